//! Native kernels for NVIDIA GPUs. `program` asks for them by the name of a kernel's frame, and `queue` launches the first plan that the device takes; if
//! none does, the translated kernel runs. A plan is sizes alone: blocks, clusters, shared memory. The figures behind the bounds are an H100's, so another
//! architecture may want other bounds.

use crate::cuda_hip::{ClusterFacts, Takeover, TakeoverLaunch};
use cantus_base::listed::{Listed, Ordered};

/// Shared by all that use clusters.
const CLUSTER: &str = cantus_cuda_kernels::CLUSTER_H;
const LOOK_BACK: &str = cantus_cuda_kernels::LOOK_BACK_H;
const THREADS: u32 = 512;
/// Floats of shared memory beside a slice: `cluster_all` is called twice.
const PARTS: u32 = 2 * (THREADS / 32 + 1);
/// Shorter rows stay in a processor's first cache for the translated kernel's second and third reading.
const LEAST_LENGTH: u32 = 8192;
/// Sizes of clusters. Sixteen is beyond what every device of an architecture promises.
const CLUSTERS: [u32; 5] = [1, 2, 4, 8, 16];

const fn rows(name: &'static str, entry: &'static str, frame: &'static str, source: &'static str) -> Takeover {
    Takeover {
        name,
        entry,
        frame,
        switches: &[],
        source: [CLUSTER, source],
        compute: (9, 0),
        rank: 10,
        threads: THREADS,
        plan: plan_rows,
    }
}

pub(super) static TAKEOVERS: [Takeover; 6] = [
    Takeover {
        switches: &["LOGARITHM"],
        ..rows("softmax by clusters", "softmax", cantus_shaders::tensor::SOFTMAX, cantus_cuda_kernels::SOFTMAX_CU)
    },
    rows(
        "layer_norm by clusters",
        "layer_norm",
        cantus_shaders::tensor::LAYER_NORM,
        cantus_cuda_kernels::LAYER_NORM_CU,
    ),
    rows("rms_norm by clusters", "rms_norm", cantus_shaders::tensor::RMS_NORM, cantus_cuda_kernels::RMS_NORM_CU),
    Takeover {
        plan: plan_bins,
        ..rows("bincount by clusters", "bincount", cantus_shaders::tensor::BINCOUNT, cantus_cuda_kernels::BINCOUNT_CU)
    },
    Takeover {
        plan: plan_field,
        ..rows(
            "coherence by clusters",
            "coherence_whole",
            cantus_shaders::tensor::COHERENCE_WHOLE,
            cantus_cuda_kernels::COHERENCE_WHOLE_CU,
        )
    },
    Takeover {
        source: [LOOK_BACK, cantus_cuda_kernels::SCAN_CU],
        compute: (7, 0),
        threads: SCAN_THREADS,
        plan: plan_scan,
        ..rows("scan by look-back", "scan", cantus_shaders::tensor::SCAN, "")
    },
];

/// A smaller part of a field is read no faster by a block of its own.
const LEAST_PART: u32 = 4096;
/// The largest field for sixteen blocks. Above it they read less at a time than all of an H100's:
/// 640 x 640 took 67 µs against 70, 768 x 768 81 against 71.
const MOST_FIELD: u32 = 7 << 16;

/// One cluster, whose blocks have a slice of the field each: the largest first, which reads it the fastest. `words` are height, width, bits of
/// the factor.
fn plan_field(words: &[u32], workgroups: [u32; 3], facts: &ClusterFacts) -> Vec<TakeoverLaunch> {
    let &[height, width, factor, ..] = words else { return Vec::new() };
    let Some(count) =
        height.checked_mul(width).filter(|count| (1..=MOST_FIELD).contains(count) && workgroups == [1, 1, 1])
    else {
        return Vec::new();
    };
    let launch = |cluster: u32| {
        let slice = count.div_ceil(cluster).next_multiple_of(4);
        let shared_bytes = slice.checked_add(PARTS)?.checked_mul(4).filter(|bytes| *bytes <= facts.shared_bytes)?;
        let pays = cluster == 1 || slice >= LEAST_PART;
        pays.then_some(TakeoverLaunch {
            grid: cluster,
            cluster,
            shared_bytes,
            words: [count, width, factor],
            cleared: 0,
        })
    };
    CLUSTERS.into_iter().rev().filter_map(launch).listed()
}

const SCAN_THREADS: u32 = 256;
/// Elements of a block: an odd number for each thread, so that a warp's threads meet in no bank of shared memory.
const SCAN_TILE: u32 = 15 * SCAN_THREADS;
/// Shorter rows are a workgroup's one block in the translated kernel.
const LEAST_SCANNED: u32 = 1025;

/// A block for each tile of each row, with a word for its state; one more is the ticket. `words` are rows, length, workgroups of a row, and
/// whether an element's own value is left out.
fn plan_scan(words: &[u32], workgroups: [u32; 3], facts: &ClusterFacts) -> Vec<TakeoverLaunch> {
    let &[rows, length, 1, exclusive, ..] = words else { return Vec::new() };
    if length < LEAST_SCANNED || workgroups != [1, rows, 1] {
        return Vec::new();
    }
    let tiles = length.div_ceil(SCAN_TILE);
    let launch = || {
        let grid = rows.checked_mul(tiles).filter(|grid| *grid <= facts.grid)?;
        let cleared = grid.checked_add(1)?.checked_mul(8)?;
        let shared_bytes = 4 * (SCAN_TILE + SCAN_THREADS / 32 + 2);
        Some(TakeoverLaunch { grid, cluster: 0, shared_bytes, words: [length, tiles, exclusive], cleared })
    };
    launch().into_iter().listed()
}

/// Fewer elements are counted in memory as quickly.
const LEAST_COUNT: u32 = 1 << 16;
/// Elements of a thread, and of a bin, that pay for clearing the counts and adding them to memory.
const EACH_THREAD: u32 = 16;
const EACH_BIN: u32 = 4;
/// Blocks, at most: two for each processor of the largest devices.
const MOST_BLOCKS: u32 = 264;

/// Clusters over all elements, whose blocks have the counts of all bins, which are more than a workgroup counts in memory of its own
/// (`bincount_own.wgsl`). `words` are elements and bins.
fn plan_bins(words: &[u32], workgroups: [u32; 3], facts: &ClusterFacts) -> Vec<TakeoverLaunch> {
    let &[count, bins, ..] = words else { return Vec::new() };
    if count < LEAST_COUNT || count / EACH_BIN < bins || bins == 0 || workgroups != [count.div_ceil(256), 1, 1] {
        return Vec::new();
    }
    let launch = |cluster: u32| {
        let slice = bins.div_ceil(cluster).next_power_of_two();
        let shared_bytes = slice.checked_mul(4).filter(|bytes| *bytes <= facts.shared_bytes)?;
        let pays = (THREADS * EACH_THREAD * cluster).max(bins.saturating_mul(EACH_BIN));
        let grid = cluster * (count / pays).clamp(1, (MOST_BLOCKS / cluster).max(1));
        Some(TakeoverLaunch { grid, cluster, shared_bytes, words: [count, bins, slice.trailing_zeros()], cleared: 0 })
    };
    smallest_first(CLUSTERS.into_iter().filter_map(launch).listed(), facts)
}

/// Clusters over rows whose slices lie in shared memory: the smallest first of those that leave room for two blocks on a processor, then those
/// that fill it. `words` are rows, length, bits of eps.
fn plan_rows(words: &[u32], workgroups: [u32; 3], facts: &ClusterFacts) -> Vec<TakeoverLaunch> {
    let &[rows, length, eps, ..] = words else { return Vec::new() };
    if length < LEAST_LENGTH || workgroups != [rows, 1, 1] {
        return Vec::new();
    }
    let launch = |cluster: u32| {
        let slice = length.div_ceil(cluster).next_multiple_of(4);
        let shared_bytes = slice.checked_add(PARTS)?.checked_mul(4).filter(|bytes| *bytes <= facts.shared_bytes)?;
        let grid = rows.checked_mul(cluster).filter(|grid| *grid <= facts.grid)?;
        Some(TakeoverLaunch { grid, cluster, shared_bytes, words: [length, slice, eps], cleared: 0 })
    };
    smallest_first(CLUSTERS.into_iter().filter_map(launch).listed(), facts)
}

/// The smallest clusters first of those that leave room for two blocks on a processor, then those that fill it.
fn smallest_first(mut launches: Vec<TakeoverLaunch>, facts: &ClusterFacts) -> Vec<TakeoverLaunch> {
    launches.order_by_key(|launch| launch.shared_bytes > facts.shared_bytes / 2);
    launches
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: ClusterFacts = ClusterFacts { shared_bytes: 232_448, grid: i32::MAX as u32 };

    #[test]
    fn every_row_has_its_slices_and_two_blocks_fit_where_they_can() {
        for length in [8192, 8193, 58_000, 100_003, 262_144, 900_000] {
            let launches = plan_rows(&[256, length, 0, 0], [256, 1, 1], &FACTS);
            let first = launches.first().expect("a cluster holds it");
            assert!(launches.iter().all(|launch| launch.words[1] * launch.cluster >= length), "{launches:?}");
            assert!(launches.iter().all(|launch| launch.shared_bytes <= FACTS.shared_bytes), "{launches:?}");
            assert!(first.shared_bytes <= FACTS.shared_bytes / 2 || length > 400_000, "{launches:?}");
        }
        // Beyond what sixteen blocks hold, short rows, and rows that are folded.
        assert!(plan_rows(&[1, 1_000_000, 0, 0], [1, 1, 1], &FACTS).is_empty());
        assert!(plan_rows(&[1, 8191, 0, 0], [1, 1, 1], &FACTS).is_empty());
        assert!(plan_rows(&[u32::MAX, 9000, 0, 0], [u32::MAX, 1, 1], &FACTS).is_empty());
        assert!(plan_rows(&[1], [1, 1, 1], &FACTS).is_empty());
    }

    #[test]
    fn every_bin_has_its_count() {
        let count = 100_000_000_u32;
        let plan = |bins: u32| plan_bins(&[count, bins, 0, 0], [count.div_ceil(256), 1, 1], &FACTS);
        for bins in [1, 255, 256, 29_057, 60_000, 500_000] {
            let launches = plan(bins);
            assert!(!launches.is_empty(), "{bins}");
            for launch in launches {
                assert!(launch.shared_bytes <= FACTS.shared_bytes && launch.shared_bytes == 4 << launch.words[2]);
                assert!(launch.cluster << launch.words[2] >= bins && launch.grid.is_multiple_of(launch.cluster));
                assert!(launch.grid <= MOST_BLOCKS, "{launch:?}");
            }
        }
        // Beyond what sixteen blocks hold, few elements, and more bins than pay.
        assert!(plan(600_000).is_empty());
        assert!(plan_bins(&[1000, 16, 0, 0], [4, 1, 1], &FACTS).is_empty());
        assert!(plan_bins(&[65_536, 20_000, 0, 0], [256, 1, 1], &FACTS).is_empty());
    }
    #[test]
    fn a_field_has_a_cluster_that_holds_it() {
        let plan = |height: u32, width: u32| plan_field(&[height, width, 0, 0], [1, 1, 1], &FACTS);
        for [height, width] in [[1, 1], [64, 64], [100, 1001], [458, 1000]] {
            let launches = plan(height, width);
            assert!(!launches.is_empty(), "{height} x {width}");
            for launch in launches {
                let slice = launch.shared_bytes / 4 - PARTS;
                assert!(launch.grid == launch.cluster && launch.cluster * slice >= height * width, "{launch:?}");
                assert!(launch.shared_bytes <= FACTS.shared_bytes, "{launch:?}");
            }
        }
        assert_eq!(plan(512, 512).first().map(|launch| launch.cluster), Some(16));
        // Beyond what sixteen blocks read quickly, beyond 32 bits, and on a device without clusters.
        assert!(plan(459, 1000).is_empty() && plan(1 << 16, 1 << 16).is_empty());
        assert!(plan_field(&[8, 8, 0, 0], [1, 1, 1], &ClusterFacts { shared_bytes: 0, ..FACTS }).is_empty());
    }

    #[test]
    fn every_tile_of_a_scan_has_its_state() {
        let plan = |rows: u32, length: u32| plan_scan(&[rows, length, 1, 0], [1, rows, 1], &FACTS);
        for [rows, length] in [[1, 1025], [1, 3840], [7, 3841], [1, u32::MAX], [60_000, 5000]] {
            let [launch] = plan(rows, length)[..] else { panic!("{rows} rows of {length}") };
            assert_eq!(u64::from(launch.grid), u64::from(rows) * u64::from(length).div_ceil(SCAN_TILE.into()));
            assert_eq!(launch.cleared, 8 * (launch.grid + 1));
        }
        // A workgroup's block, two passes, and more blocks than a launch has.
        assert!(plan(1, 1024).is_empty() && plan(1 << 20, u32::MAX).is_empty());
        assert!(plan_scan(&[1, 5000, 5, 0], [5, 1, 1], &FACTS).is_empty());
    }
}
