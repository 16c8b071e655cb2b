//! Kernels: types, workgroup memory, atomics, subgroups, grids.

use wgpu::Features;

use super::both;

#[test]
fn overrides() {
    let text = "
        override size: u32 = 4;
        @id(7) override factor: f32;
        override twice = size * 2;
        var<workgroup> shared_words: array<u32, twice>;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(size) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
            shared_words[i] = u32(f32(id.x) * factor);
            shared_words[i + size] = twice;
            workgroupBarrier();
            y[id.x] = shared_words[size - 1 - i] * 100 + shared_words[size + i];
        }";
    let expected: Vec<u32> = (0..16).map(|id| (id / 8 * 8 + 7 - id % 8) * 5 / 2 * 100 + 16).collect();
    both("overrides", Features::empty(), &expected, |gpu| {
        let pipeline = gpu.pipeline(text, &[("size", 8.0), ("7", 2.5)]);
        let y = gpu.buffer(&[0; 16]);
        gpu.run(&pipeline, &[y.as_entire_binding()], [2, 1, 1]);
        gpu.words(&y)
    });
}

#[test]
fn workgroup_memory_and_barriers() {
    let text = "
        var<workgroup> sums: array<u32, 64>;
        @group(0) @binding(0) var<storage> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3u) {
            sums[i] = x[group.x * 64 + i];
            for (var step = 32u; step > 0; step /= 2) {
                workgroupBarrier();
                if i < step { sums[i] += sums[i + step]; }
            }
            if i == 0 { y[group.x] = sums[0]; }
        }";
    let x: Vec<u32> = (0..640).map(|i| i * i % 97).collect();
    let expected: Vec<u32> = x.chunks(64).map(|part| part.iter().sum()).collect();
    both("workgroup memory", Features::empty(), &expected, |gpu| {
        let (input, output) = (gpu.buffer(&x), gpu.buffer(&[0; 10]));
        let pipeline = gpu.pipeline(text, &[]);
        gpu.run(&pipeline, &[input.as_entire_binding(), output.as_entire_binding()], [10, 1, 1]);
        gpu.words(&output)
    });
}

#[test]
fn atomics_count() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>, 8>;
        @group(0) @binding(1) var<storage, read_write> most: atomic<i32>;
        @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u) {
            atomicAdd(&counts[id.x * id.x % 8], 1u);
            atomicMax(&most, i32(id.x) - 500);
        }";
    let mut expected = vec![0; 9];
    (0..320_u32).for_each(|id| expected[(id * id % 8) as usize] += 1);
    expected[8] = 319_u32.wrapping_sub(500);
    both("atomics", Features::empty(), &expected, |gpu| {
        let (counts, most) = (gpu.buffer(&[0; 8]), gpu.buffer(&[(-1000_i32).cast_unsigned()]));
        let pipeline = gpu.pipeline(text, &[]);
        gpu.run(&pipeline, &[counts.as_entire_binding(), most.as_entire_binding()], [10, 1, 1]);
        [gpu.words(&counts), gpu.words(&most)].concat()
    });
}

/// WGSL has atomics only where a kernel may write. naga takes them elsewhere too, and programs on wgpu share structures that way.
#[test]
fn atomics_that_are_only_read() {
    let text = "
        struct Body { hits: atomic<u32>, weight: u32, least: atomic<i32> }
        @group(0) @binding(0) var<storage> bodies: array<Body>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) {
            y[id.x] = bodies[id.x].weight * 100 + atomicLoad(&bodies[id.x].hits) + u32(-atomicLoad(&bodies[7 - id.x].least));
        }";
    let bodies: Vec<u32> = (0..8_u32).flat_map(|i| [i * i, i + 3, (2 * i).wrapping_neg()]).collect();
    let expected: Vec<u32> = (0..8).map(|i| (i + 3) * 100 + i * i + 2 * (7 - i)).collect();
    both("atomics that are only read", Features::empty(), &expected, |gpu| {
        let (bodies, y) = (gpu.buffer(&bodies), gpu.buffer(&[0; 8]));
        gpu.run(&gpu.pipeline(text, &[]), &[bodies.as_entire_binding(), y.as_entire_binding()], [1, 1, 1]);
        gpu.words(&y)
    });
}

#[test]
fn halves() {
    let text = "enable f16;
        @group(0) @binding(0) var<storage, read_write> x: array<vec2h>;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
            x[id.x] = x[id.x] * 1.5h + vec2h(0.25h, f16(id.x));
        }";
    let pack = |a: f32, b: f32| {
        u32::from(half::f16::from_f32(a).to_bits()) | u32::from(half::f16::from_f32(b).to_bits()) << 16
    };
    let x: Vec<u32> = (0..4_u8).map(|i| pack(f32::from(i), 8.0)).collect();
    let expected: Vec<u32> = (0..4_u8).map(|i| pack(f32::from(i) * 1.5 + 0.25, 12.0 + f32::from(i))).collect();
    both("f16", Features::SHADER_F16, &expected, |gpu| {
        let buffer = gpu.buffer(&x);
        gpu.run(&gpu.pipeline(text, &[]), &[buffer.as_entire_binding()], [1, 1, 1]);
        gpu.words(&buffer)
    });
}

/// Sums do not depend on the size of subgroups, which devices choose.
#[test]
fn subgroups() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> y: array<atomic<u32>, 3>;
        @compute @workgroup_size(64) fn main(
            @builtin(global_invocation_id) id: vec3u, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) size: u32,
        ) {
            let sum = subgroupAdd(id.x);
            let first = subgroupBroadcastFirst(id.x);
            if lane == 0 {
                atomicAdd(&y[0], sum);
                atomicAdd(&y[1], u32(first == id.x));
            }
            atomicAdd(&y[2], u32(lane < size && subgroupAny(lane == 0)));
        }";
    both("subgroups", Features::SUBGROUP, &[127 * 64, 1, 128], |gpu| {
        let buffer = gpu.buffer(&[0; 3]);
        gpu.run(&gpu.pipeline(text, &[]), &[buffer.as_entire_binding()], [2, 1, 1]);
        let [sum, firsts, all] = gpu.words(&buffer).try_into().unwrap();
        vec![sum, u32::from((2..=128).contains(&firsts)), all]
    });
}

#[test]
fn integers_of_64_bits() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<u64, 4>;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
            x[id.x] = (u64(id.x) << 33u) * 3lu + x[id.x] / 7lu;
        }";
    let value = |id: u64| (id << 33) * 3 + ((1 << 40) + id) / 7;
    let expected: Vec<u32> = (0..4).flat_map(|id| bytemuck::cast::<u64, [u32; 2]>(value(id))).collect();
    both("64 bits", Features::SHADER_INT64, &expected, |gpu| {
        let x: Vec<u32> = (0..4).flat_map(|id| bytemuck::cast::<u64, [u32; 2]>((1_u64 << 40) + id)).collect();
        let buffer = gpu.buffer(&x);
        gpu.run(&gpu.pipeline(text, &[]), &[buffer.as_entire_binding()], [1, 1, 1]);
        gpu.words(&buffer)
    });
}

#[test]
fn integers_of_16_bits() {
    let text = "enable wgpu_int16;
        @group(0) @binding(0) var<storage, read_write> x: array<u16, 4>;
        @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = x[id.x] * u16(id.x + 7); }";
    let words = |values: [u16; 4]| bytemuck::cast::<[u16; 4], [u32; 2]>(values);
    let values = [1_u16, 300, 40000, 65535];
    let mut factor = 6;
    let expected = words(values.map(|value| {
        factor += 1;
        value.wrapping_mul(factor)
    }));
    both("16 bits", Features::SHADER_I16, &expected, |gpu| {
        let buffer = gpu.buffer(&words(values));
        gpu.run(&gpu.pipeline(text, &[]), &[buffer.as_entire_binding()], [1, 1, 1]);
        gpu.words(&buffer)
    });
}

#[test]
fn atomics_of_64_bits() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> sum: atomic<u64>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            atomicAdd(&sum, u64(id.x) << 24u);
        }";
    let expected: [u32; 2] = bytemuck::cast((255_u64 * 128) << 24);
    let features = Features::SHADER_INT64 | Features::SHADER_INT64_ATOMIC_ALL_OPS;
    both("64-bit atomics", features, &expected, |gpu| {
        let buffer = gpu.buffer(&[0; 2]);
        gpu.run(&gpu.pipeline(text, &[]), &[buffer.as_entire_binding()], [4, 1, 1]);
        gpu.words(&buffer)
    });
}

#[test]
fn floats_of_64_bits() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<f64, 2>;
        @compute @workgroup_size(2) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = x[id.x] * x[id.x] + 1.0lf; }";
    let value = |x: f64| bytemuck::cast::<f64, [u32; 2]>(x);
    let expected = [value(1.0 + 2_f64.powi(-40)), value(10.0)].concat();
    both("f64", Features::SHADER_F64, &expected, |gpu| {
        let buffer = gpu.buffer(&[value(2_f64.powi(-20)), value(3.0)].concat());
        gpu.run(&gpu.pipeline(text, &[]), &[buffer.as_entire_binding()], [1, 1, 1]);
        gpu.words(&buffer)
    });
}

#[test]
fn floats_are_added_atomically() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> sum: atomic<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { atomicAdd(&sum, 0.5); }";
    both("f32 atomics", Features::SHADER_FLOAT32_ATOMIC, &[64.0_f32.to_bits()], |gpu| {
        let buffer = gpu.buffer(&[0]);
        gpu.run(&gpu.pipeline(text, &[]), &[buffer.as_entire_binding()], [2, 1, 1]);
        gpu.words(&buffer)
    });
}

/// The grid as kernels see it, and grids without a workgroup.
#[test]
fn grids() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(2, 1, 3) fn main(
            @builtin(num_workgroups) count: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) i: u32,
        ) {
            y[((group.z * count.y + group.y) * count.x + group.x) * 6 + i] += 1 + count.x * 100 + count.y * 10 + count.z;
        }";
    both("grids", Features::empty(), &[1 + 3 * 100 + 2 * 10 + 2; 72], |gpu| {
        let pipeline = gpu.pipeline(text, &[]);
        let buffer = gpu.buffer(&[0; 72]);
        for workgroups in [[0, 2, 2], [3, 2, 2], [3, 0, 1], [1, 1, 0]] {
            gpu.run(&pipeline, &[buffer.as_entire_binding()], workgroups);
        }
        gpu.words(&buffer)
    });
}

/// Indices outside of buffers neither fail nor reach other memory. What a load gives is the device's choice among the buffer's words and zero.
#[test]
fn bounds_are_kept() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u) {
            let far = id.x * 0x3fffffffu + 64u;
            let old = x[far];
            y[id.x] = select(0u, 1u, old == 0u || old == 5u) + arrayLength(&x) * 10;
        }";
    both("bounds", Features::empty(), &[161; 8], |gpu| {
        let (x, y) = (gpu.buffer(&[5; 16]), gpu.buffer(&[0; 8]));
        let pipeline = gpu.pipeline(text, &[]);
        gpu.run(&pipeline, &[x.as_entire_binding(), y.as_entire_binding()], [1, 1, 1]);
        gpu.words(&y)
    });
}
