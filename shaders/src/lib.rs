//! The text of the kernels that Cantus ships, and their prepared forms.
//!
//! The folders of this crate are the only definition of each kernel: people edit them, and the crates that run a kernel name it here. What lies in
//! `prepared/` is linked and prepared from them by `cargo xtask prepare`.

pub mod scan;

/// Constants with the contents of files: WGSL as text, prepared kernels as bytes.
macro_rules! files {
    ($($name:ident = $file:literal;)*) => {
        $(#[doc = concat!("The contents of `", $file, "`.")] pub const $name: &str = include_str!(concat!("../", $file));)*
    };
}

/// The sum over a workgroup of `LANES` invocations, which the kernel names: `lib/lanes.wgsl`.
pub const LANES: &str = include_str!("../lib/lanes.wgsl");

/// Functions for textures over buffers of texels: `lib/texture.wgsl`.
pub const TEXTURE: &str = include_str!("../lib/texture.wgsl");

/// The modules that apps' kernels may import from the package `cantus`, by name.
pub const LIBRARY: &[(&str, &str)] = &[
    ("convert", include_str!("../lib/convert.wgsl")),
    ("functions", include_str!("../elementwise/functions.wgsl")),
    ("math", include_str!("../lib/math.wgsl")),
    ("random", include_str!("../lib/random.wgsl")),
    ("safe", include_str!("../lib/safe.wgsl")),
    ("workgroup", include_str!("../lib/workgroup.wgsl")),
];

/// Kernels with known answers, which show what a driver computes.
pub mod answers {
    files! {
        ARRAY_STRIDES = "answers/array_strides.wgsl";
        ATOMICS = "answers/atomics.wgsl";
        BARRIERS_IN_LOOPS = "answers/barriers_in_loops.wgsl";
        BARRIERS_UNDER_CONDITIONS = "answers/barriers_under_conditions.wgsl";
        BITS = "answers/bits.wgsl";
        CONDITIONS = "answers/conditions.wgsl";
        COOPERATIVE_MATRICES = "answers/cooperative_matrices.wgsl";
        DOUBLES = "answers/doubles.wgsl";
        DYNAMIC_INDEXING = "answers/dynamic_indexing.wgsl";
        FLOAT_TO_INT = "answers/float_to_int.wgsl";
        FLOATS = "answers/floats.wgsl";
        HALVES = "answers/halves.wgsl";
        IDS = "answers/ids.wgsl";
        INTEGER_ARITHMETIC = "answers/integer_arithmetic.wgsl";
        INTEGER_DIVISION = "answers/integer_division.wgsl";
        LARGE_DISPATCH = "answers/large_dispatch.wgsl";
        LONG_LOOPS = "answers/long_loops.wgsl";
        LOOPS = "answers/loops.wgsl";
        MANY_CASES = "answers/many_cases.wgsl";
        MATRICES = "answers/matrices.wgsl";
        PACKING = "answers/packing.wgsl";
        POINTERS = "answers/pointers.wgsl";
        PRIVATE_MEMORY = "answers/private_memory.wgsl";
        SAME_BITS = "answers/same_bits.wgsl";
        SHIFTS = "answers/shifts.wgsl";
        SMALL_COOPERATIVE_MATRICES = "answers/small_cooperative_matrices.wgsl";
        SUBGROUPS = "answers/subgroups.wgsl";
        SWITCHES = "answers/switches.wgsl";
        UNIFORM_LAYOUT = "answers/uniform_layout.wgsl";
        WIDE_INTEGERS = "answers/wide_integers.wgsl";
        WORKGROUP_SUMS = "answers/workgroup_sums.wgsl";
        WORKGROUP_ZEROED = "answers/workgroup_zeroed.wgsl";
    }
}

/// Linked and prepared forms of shipped kernels.
pub mod prepared {
    files! {
        ELEMENTWISE_FUNCTIONS_NATIVE = "src/prepared/elementwise_functions.native.wgsl";
        ELEMENTWISE_FUNCTIONS_PORTABLE = "src/prepared/elementwise_functions.portable.wgsl";
        FIELD = "src/prepared/field.wgsl";
        PHI_PATTERN = "src/prepared/phi_pattern.wgsl";
    }

    /// The contents of `prepared/coherence_moments.kernel`.
    pub const COHERENCE_MOMENTS_KERNEL: &[u8] = include_bytes!("prepared/coherence_moments.kernel");

    /// The contents of `prepared/coherence_neighbour_sum.kernel`.
    pub const COHERENCE_NEIGHBOUR_SUM_KERNEL: &[u8] = include_bytes!("prepared/coherence_neighbour_sum.kernel");

    /// The contents of `prepared/field.kernel`.
    pub const FIELD_KERNEL: &[u8] = include_bytes!("prepared/field.kernel");

    /// The contents of `prepared/phi_pattern.kernel`.
    pub const PHI_PATTERN_KERNEL: &[u8] = include_bytes!("prepared/phi_pattern.kernel");
}

/// Frames of the operations on tensors.
pub mod tensor {
    files! {
        ASSEMBLE = "tensor/assemble.wgsl";
        ATTENTION = "tensor/attention.wgsl";
        ATTENTION_TILES = "tensor/attention_tiles.wgsl";
        BINCOUNT = "tensor/bincount.wgsl";
        BINCOUNT_OWN = "tensor/bincount_own.wgsl";
        CHOLESKY_BLOCK = "tensor/cholesky_block.wgsl";
        COHERENCE_WHOLE = "tensor/coherence_whole.wgsl";
        CONV2D = "tensor/conv2d.wgsl";
        CSR_MATMUL = "tensor/csr_matmul.wgsl";
        EIGH_JACOBI = "tensor/eigh_jacobi.wgsl";
        ELEMENTWISE_FLAT = "tensor/elementwise_flat.wgsl";
        ELEMENTWISE_HALVES = "tensor/elementwise_halves.wgsl";
        ELEMENTWISE_PACKED = "tensor/elementwise_packed.wgsl";
        ELEMENTWISE_ROWS = "tensor/elementwise_rows.wgsl";
        FFT = "tensor/fft.wgsl";
        FFT_REAL = "tensor/fft_real.wgsl";
        FFT_TILE = "tensor/fft_tile.wgsl";
        FIRST_OF_ROWS = "tensor/first_of_rows.wgsl";
        GRID_SAMPLE = "tensor/grid_sample.wgsl";
        INTERPOLATE = "tensor/interpolate.wgsl";
        INTERPOLATE_TILE = "tensor/interpolate_tile.wgsl";
        INTERPOLATE_WEIGHT = "tensor/interpolate_weight.wgsl";
        LAYER_NORM = "tensor/layer_norm.wgsl";
        LAYER_NORM_HELD = "tensor/layer_norm_held.wgsl";
        LU_PANEL = "tensor/lu_panel.wgsl";
        MATMUL = "tensor/matmul.wgsl";
        MATMUL_COOPERATIVE = "tensor/matmul_cooperative.wgsl";
        PAIRS = "tensor/pairs.wgsl";
        POOL2D = "tensor/pool2d.wgsl";
        QR_PANEL = "tensor/qr_panel.wgsl";
        RANDOM = "tensor/random.wgsl";
        REDUCE_COLUMNS = "tensor/reduce_columns.wgsl";
        REDUCE_ROWS = "tensor/reduce_rows.wgsl";
        RMS_NORM = "tensor/rms_norm.wgsl";
        RMS_NORM_HELD = "tensor/rms_norm_held.wgsl";
        SCAN = "tensor/scan.wgsl";
        SCATTER = "tensor/scatter.wgsl";
        SEARCHSORTED = "tensor/searchsorted.wgsl";
        SEGMENTS = "tensor/segments.wgsl";
        SOFTMAX = "tensor/softmax.wgsl";
        SOFTMAX_HELD = "tensor/softmax_held.wgsl";
        SORT_BLOCKS = "tensor/sort_blocks.wgsl";
        SORT_COUNT = "tensor/sort_count.wgsl";
        SORT_MOVE = "tensor/sort_move.wgsl";
        SORT_ROWS = "tensor/sort_rows.wgsl";
        SORT_TILE = "tensor/sort_tile.wgsl";
        SVD_JACOBI = "tensor/svd_jacobi.wgsl";
        TRIANGULAR_BLOCK = "tensor/triangular_block.wgsl";
        UNIT_ROOT = "tensor/unit_root.wgsl";
    }

    /// Conversions and arithmetic of dtypes.
    pub mod numbers {
        files! {
            COMPLEX = "tensor/numbers/complex.wgsl";
            CONVERSIONS = "tensor/numbers/conversions.wgsl";
            WIDE = "tensor/numbers/wide.wgsl";
        }
    }
}

/// Frames of the operations of proofs, and arithmetic of fields.
pub mod zk {
    files! {
        FIELD_INVERSE = "zk/field_inverse.wgsl";
        FIELD_MAP = "zk/field_map.wgsl";
        FIELD_POW = "zk/field_pow.wgsl";
        FIELD_SUM = "zk/field_sum.wgsl";
        GOLDILOCKS = "zk/goldilocks.wgsl";
        HASH_BLOCKS = "zk/hash_blocks.wgsl";
        HASH_PAIRS = "zk/hash_pairs.wgsl";
        MERSENNE31 = "zk/mersenne31.wgsl";
        MONTGOMERY31 = "zk/montgomery31.wgsl";
        MSM_DIGITS = "zk/msm_digits.wgsl";
        MSM_SUMS = "zk/msm_sums.wgsl";
        MSM_WEIGH = "zk/msm_weigh.wgsl";
        NTT = "zk/ntt.wgsl";
        POINT = "zk/point.wgsl";
        POINT_HEIGHTS = "zk/point_heights.wgsl";
        POINT_MAP = "zk/point_map.wgsl";
        POINT_NORMALIZE = "zk/point_normalize.wgsl";
        POINT_SCALE = "zk/point_scale.wgsl";
        POSEIDON2 = "zk/poseidon2.wgsl";
        SCALAR_VALUES = "zk/scalar_values.wgsl";
        SHA256 = "zk/sha256.wgsl";
        WIDE_PRODUCT_U32 = "zk/wide_product_u32.wgsl";
        WIDE_PRODUCT_U64 = "zk/wide_product_u64.wgsl";
    }
}
