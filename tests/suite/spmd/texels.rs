//! Instructions that the executor makes of several, and values that it computes once.

use super::harness::{Run, compile};

/// An image whose width, height and first word come with the launch, read around each invocation as the library of textures does it.
fn image(workgroup: &str, access: &str, words: u32, word: u32) -> String {
    format!(
        "@group(0) @binding(0) var<uniform> size: vec4u;
        @group(0) @binding(1) var<storage, {access}> texels: array<u32>;
        @group(0) @binding(2) var<storage, read_write> result: array<u32>;
        fn load(texel: vec2u) -> u32 {{
            var at = texel.x;
            at += size.x * texel.y;
            {times}
            let word = texels[size.z + at{plus}];
            return select(0u, word, all(texel < size.xy));
        }}
        @compute @workgroup_size({workgroup}) fn main(@builtin(global_invocation_id) id: vec3u) {{
            let at = vec2i(id.xy);
            let sum = load(vec2u(at + vec2i(-1, -1))) + 3u * load(vec2u(at + vec2i(2, 1))) + 5u * load(vec2u(at));
            {store}
            if id.x < 100u && id.y < 40u {{ result[id.y * 100u + id.x] = sum + 7u * load(vec2u(at)); }}
        }}",
        times = if words == 1 { String::new() } else { format!("at *= {words}u;") },
        plus = if word == 0 { String::new() } else { format!(" + {word}u") },
        store = if access == "read" { "" } else { "texels[0] = 12345u;" },
    )
}

#[test]
fn texels_are_loaded_by_their_coordinates() {
    let (width, height) = (83_usize, 37_usize);
    // Rows of a workgroup begin anywhere in a block of lanes.
    for workgroup in
        ["64", "16, 16", "8, 8", "4, 4", "128, 2", "1", "5, 7", "12, 3", "3, 11", "2, 16", "1, 24", "33, 3"]
    {
        for (words, word) in [(1_usize, 0_usize), (2, 0), (2, 1), (4, 3)] {
            for (base, missing) in [(0_usize, 0_usize), (5, 0), (5, 300)] {
                let text = image(workgroup, "read", words as u32, word as u32);
                let listing = compile(&text).listing();
                assert!(listing.contains("Texel"), "{workgroup}\n{listing}");
                let total = base + width * height * words - missing;
                let texels: Vec<u32> = (0..total as u32).map(|i| i.wrapping_mul(2_654_435_761) | 1).collect();
                let size = [width as u32, height as u32, base as u32, 0];
                let mut sides = workgroup.split(", ").map(|side| side.parse::<u32>().unwrap());
                let groups_x = 100_u32.div_ceil(sides.next().unwrap_or(1));
                let groups_y = 40_u32.div_ceil(sides.next().unwrap_or(1));
                let run = Run::new(&text).buffer(&size).buffer(&texels).zeros(100 * 40 * 4);
                let found = run.dispatch([groups_x, groups_y, 1]).read::<u32>(2);
                let load = |x: i64, y: i64| {
                    let is_in = x >= 0 && y >= 0 && x < width as i64 && y < height as i64;
                    let at = base + (x + y * width as i64).max(0) as usize * words + word;
                    if is_in { texels.get(at).copied().unwrap_or(0) } else { 0 }
                };
                for (place, found) in found.iter().enumerate() {
                    let (x, y) = ((place % 100) as i64, (place / 100) as i64);
                    let expected = load(x - 1, y - 1)
                        .wrapping_add(load(x + 2, y + 1).wrapping_mul(3))
                        .wrapping_add(load(x, y).wrapping_mul(12));
                    assert_eq!(*found, expected, "({workgroup}), word {word} of {words}, base {base}: {x}, {y}");
                }
            }
        }
    }
}

#[test]
fn a_store_between_two_loads_is_seen() {
    // Lanes store one number into the first texel between loads of it.
    let text = image("64", "read_write", 1, 0);
    let texels = vec![1_u32; 100 * 40];
    let run = Run::new(&text).buffer(&[100_u32, 40, 0, 0]).buffer(&texels).zeros(100 * 40 * 4);
    let found = run.dispatch_with([1, 1, 1], false).read::<u32>(2);
    // The invocation at the corner: nothing above, then two loads of itself, the second behind the store.
    assert_eq!(found[0], 3 + 5 + 7 * 12345);
    assert_eq!(found[1], 3 + 5 + 7);
}

#[test]
fn bytes_are_fractions_of_255() {
    let text = "
        @group(0) @binding(0) var<storage> words: array<u32>;
        @group(0) @binding(1) var<storage, read_write> result: array<vec4f>;
        @group(0) @binding(2) var<storage, read_write> packed: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            let w = words[id.x];
            let bytes = vec4u(w & 255u, (w >> 8u) & 255u, (w >> 16u) & 255u, w >> 24u);
            let part = vec4f(bitcast<vec4i>(bytes)) * 0x1p-8;
            let value = part + part * (1.0 / 255.0);
            result[id.x] = value;
            let scaled = bitcast<vec4f>(vec4u(w) * vec4u(1u, 3u, 5u, 7u)) + value;
            let whole = bitcast<vec4u>(vec4i(clamp(scaled, vec4f(), vec4f(1.0)) * 255.0 + 0.5)) << vec4u(0u, 8u, 16u, 24u);
            packed[id.x] = whole.x | whole.y | whole.z | whole.w;
        }";
    let listing = compile(text).listing();
    assert!((0..4).all(|byte| listing.contains(&format!("ToUnorm8({byte})"))), "{listing}");
    let words: Vec<u32> = (0..256_u32).map(|i| i.wrapping_mul(0x0101_0101).wrapping_add(i << 23)).collect();
    let run = Run::new(text).buffer(&words).zeros(256 * 16).zeros(256 * 4).dispatch([4, 1, 1]);
    let (found, packed) = (run.read::<f32>(1), run.read::<u32>(2));
    for (place, word) in words.iter().enumerate() {
        let mut expected = 0_u32;
        for byte in 0..4 {
            let value = f64::from((word >> (8 * byte)) & 255) / 255.0;
            assert_eq!(found[place * 4 + byte].to_bits(), (value as f32).to_bits(), "byte {byte} of {word:08x}");
            let other = f32::from_bits(word.wrapping_mul([1, 3, 5, 7][byte])) + value as f32;
            // NaN is stored as 0.
            let bounded = if other > 0.0 { other.min(1.0) } else { 0.0 };
            expected |= ((bounded * 255.0 + 0.5) as u32) << (8 * byte);
        }
        assert_eq!(packed[place], expected, "{word:08x}");
    }
}

#[test]
fn a_sum_of_products_is_rounded_twice() {
    let text = "
        @group(0) @binding(0) var<storage> x: array<f32>;
        @group(0) @binding(1) var<uniform> k: vec4f;
        @group(0) @binding(2) var<storage, read_write> result: array<array<f32, 7>>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            let a = x[id.x];
            let b = x[id.x + 1u];
            let c = x[id.x + 2u];
            result[id.x] = array(a * b + c, c + k.x * a, b * a + k.y, k.z * b + k.w, a * c - b, k.w * a - c, b * k.y - k.z);
        }";
    let listing = compile(text).listing();
    assert_eq!(["MulAdd", "MulSub"].map(|op| listing.matches(op).count()), [2 * 4, 2 * 3], "{listing}");
    let x: Vec<f32> = (0..258).map(|i| (i as f32 * 0.731).sin() * 1.37 + 1e-3).collect();
    let k = [0.3_f32, -1.7, 0.9, 2.1];
    let found = Run::new(text).buffer(&x).buffer(&k).zeros(256 * 28).dispatch([4, 1, 1]).read::<f32>(2);
    for place in 0..256 {
        let (a, b, c) = (x[place], x[place + 1], x[place + 2]);
        let sums = [a * b + c, c + k[0] * a, b * a + k[1], k[2] * b + k[3]];
        let differences = [a * c - b, k[3] * a - c, b * k[1] - k[2]];
        let expected = sums.into_iter().chain(differences);
        for (part, expected) in expected.enumerate() {
            assert_eq!(found[place * 7 + part].to_bits(), expected.to_bits(), "{place}, {part}");
        }
    }
}

#[test]
fn what_is_computed_twice_in_a_loop_is_right() {
    // A value that is known before a branch, in it, and behind it; variables that are read again after each of them.
    let text = "
        @group(0) @binding(0) var<storage, read_write> result: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            var sum = id.x * 3u;
            var other = sum + 1u;
            for (var i = 0u; i < 5u; i++) {
                let before = sum * 7u + i;
                if (before & 1u) == 0u {
                    sum = sum + (sum * 7u + i);
                    other = sum * 7u + i;
                } else if (sum & 2u) == 0u {
                    other += sum * 7u + i;
                }
                sum = sum ^ (sum * 7u + i) ^ other;
                result[id.x] = sum;
                sum = sum + result[id.x];
                result[id.x] = other;
                other = other + result[id.x];
            }
            result[id.x] = sum + other;
        }";
    let found = Run::new(text).zeros(256 * 4).dispatch([4, 1, 1]).read::<u32>(0);
    for (id, found) in (0_u32..).zip(found) {
        let mut sum = id * 3;
        let mut other = sum + 1;
        let last = |sum: u32, i: u32| sum.wrapping_mul(7).wrapping_add(i);
        for i in 0..5 {
            if last(sum, i) & 1 == 0 {
                sum = sum.wrapping_add(last(sum, i));
                other = last(sum, i);
            } else if sum & 2 == 0 {
                other = other.wrapping_add(last(sum, i));
            }
            sum = sum ^ last(sum, i) ^ other;
            sum = sum.wrapping_add(sum);
            other = other.wrapping_add(other);
        }
        assert_eq!(found, sum.wrapping_add(other), "{id}");
    }
}
