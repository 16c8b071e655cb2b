//! Integer rules to the letter, and every kind of number through registers and memory.

use super::harness::Run;

const INTS: [i32; 12] = [0, 1, -1, 2, -2, 7, -7, i32::MIN, i32::MAX, 31, 32, 0x1234_5678];

fn pairs() -> (Vec<i32>, Vec<i32>) {
    let a = INTS.iter().flat_map(|a| INTS.map(|_| *a)).collect();
    let b = INTS.iter().flat_map(|_| INTS).collect();
    (a, b)
}

/// Every pair through an expression of `a` and `b`.
fn each<T: bytemuck::Pod + PartialEq + std::fmt::Debug>(expression: &str, f: impl Fn(i32, i32) -> T) {
    let (a, b) = pairs();
    let ty = if size_of::<T>() == 8 { "vec2i" } else { "i32" };
    let text = format!(
        "@group(0) @binding(0) var<storage, read> a_: array<i32>;
        @group(0) @binding(1) var<storage, read> b_: array<i32>;
        @group(0) @binding(2) var<storage, read_write> c_: array<{ty}>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) {{
            if id.x >= arrayLength(&c_) {{ return; }}
            let a = a_[id.x]; let b = b_[id.x];
            let ua = bitcast<u32>(a); let ub = bitcast<u32>(b);
            c_[id.x] = {expression};
        }}"
    );
    let n = a.len();
    let run = Run::new(&text).buffer(&a).buffer(&b).zeros(n * size_of::<T>()).dispatch([n.div_ceil(64) as u32, 1, 1]);
    let got = bytemuck::cast_slice::<u8, i32>(&run.read::<u8>(2)).to_vec();
    for i in 0..n {
        let words = size_of::<T>() / 4;
        let expected = f(a[i], b[i]);
        let expected: &[i32] = bytemuck::cast_slice(std::slice::from_ref(&expected));
        assert_eq!(got[i * words..(i + 1) * words], *expected, "{expression} with {} and {}", a[i], b[i]);
    }
}

#[test]
fn integers() {
    each("a / b", |a, b| if b == 0 { a } else { a.wrapping_div(b) });
    each("a % b", |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) });
    each("bitcast<i32>(ua / ub)", |a, b| if b == 0 { a as u32 } else { a as u32 / b as u32 });
    each("bitcast<i32>(ua % ub)", |a, b| if b == 0 { 0 } else { a as u32 % b as u32 });
    each("a * b - a", |a, b| a.wrapping_mul(b).wrapping_sub(a));
    each("(a << ub) + (a >> ub)", |a, b| a.wrapping_shl(b as u32).wrapping_add(a.wrapping_shr(b as u32)));
    each("bitcast<i32>(ua >> ub)", |a, b| (a as u32).wrapping_shr(b as u32));
    each("min(a, b) ^ max(a, b)", |a, b| a ^ b);
    each("bitcast<i32>(min(ua, ub))", |a, b| (a as u32).min(b as u32));
    each("select(abs(a), -b, a < b)", |a, b| if a < b { b.wrapping_neg() } else { a.wrapping_abs() });
    each("firstLeadingBit(a) + 100 * bitcast<i32>(firstLeadingBit(ub))", |a, b| {
        let signed = if a == 0 || a == -1 { -1 } else { 31 - (if a < 0 { !a } else { a }).leading_zeros() as i32 };
        signed + 100 * (31 - b.leading_zeros() as i32)
    });
    each("firstTrailingBit(a) + 100 * countOneBits(b)", |a, b| {
        (if a == 0 { -1 } else { a.trailing_zeros() as i32 }) + 100 * b.count_ones() as i32
    });
    each("extractBits(a, ub, 7u) + bitcast<i32>(extractBits(ub, ua & 31u, ub & 63u))", |a, b| {
        let signed = {
            let o = (b as u32).min(32);
            let c = 7.min(32 - o);
            if c == 0 { 0 } else { a << (32 - o - c) >> (32 - c) }
        };
        let unsigned = {
            let o = a as u32 & 31;
            let c = (b as u32 & 63).min(32 - o);
            if c == 0 { 0 } else { (b as u32) << (32 - o - c) >> (32 - c) }
        };
        signed.wrapping_add(unsigned as i32)
    });
    each("insertBits(a, b, ua & 31u, ub & 31u)", |a, b| {
        let o = a as u32 & 31;
        let c = (b as u32 & 31).min(32 - o);
        let mask = (((1_u64 << c) - 1) << o) as u32;
        (a as u32 & !mask) | ((b as u32) << o & mask)
    });
    each("bitcast<i32>(reverseBits(ua)) ^ countLeadingZeros(b)", |a, b| a.reverse_bits() ^ b.leading_zeros() as i32);
    each("i32(f32(a)) + i32(f32(a) * 3e9)", |a, _| {
        let clamp = |x: f32| x.clamp(-2147483648.0, 2147483520.0) as i32;
        clamp(a as f32).wrapping_add(clamp(a as f32 * 3e9))
    });
    each("bitcast<i32>(u32(f32(b) * 1e5))", |_, b| (b as f32 * 1e5).clamp(0.0, 4294967040.0) as u32);
    each("dot4I8Packed(ua, ub) + bitcast<i32>(dot4U8Packed(ua, ub))", |a, b| {
        let (x, y) = (a.to_le_bytes(), b.to_le_bytes());
        let signed: i32 = (0..4).map(|k| i32::from(x[k] as i8) * i32::from(y[k] as i8)).sum();
        let unsigned: u32 = (0..4).map(|k| u32::from(x[k]) * u32::from(y[k])).sum();
        signed.wrapping_add(unsigned as i32)
    });
    each("bitcast<i32>(ua / 7u + ub % 10u + ua / 641u + ua / 4294967295u + ua / 65536u)", |a, b| {
        let (a, b) = (a as u32, b as u32);
        (a / 7).wrapping_add(b % 10).wrapping_add(a / 641).wrapping_add(a / u32::MAX).wrapping_add(a / 65536)
    });
}

#[test]
fn wide_integers() {
    let text = |body: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read> a: array<i64>;
            @group(0) @binding(1) var<storage, read_write> b: array<i64>;
            @compute @workgroup_size(32)
            fn main(@builtin(local_invocation_index) i: u32) {{ let x = a[i]; let y = a[31u - i]; b[i] = {body}; }}"
        )
    };
    let a: Vec<i64> =
        (0..32).map(|i| [i64::MIN, -1, 0, 1, i64::MAX, 12345678901][i % 6].wrapping_mul(i as i64 / 3 + 1)).collect();
    let check = |body: &str, f: &dyn Fn(i64, i64) -> i64| {
        let got = Run::new(&text(body)).buffer(&a).zeros(256).dispatch([1, 1, 1]).read::<i64>(1);
        for i in 0..32 {
            assert_eq!(got[i], f(a[i], a[31 - i]), "{body} with {} and {}", a[i], a[31 - i]);
        }
    };
    check("x * y + (x >> 3u)", &|x, y| x.wrapping_mul(y).wrapping_add(x >> 3));
    check("x / y - x % y", &|x, y| {
        if y == 0 { x } else { x.wrapping_div(y).wrapping_sub(x.wrapping_rem(y)) }
    });
    check("select(min(x, y), i64(i32(x)), x > y)", &|x, y| if x > y { i64::from(x as i32) } else { x.min(y) });
    check("i64(u64(x) / u64(9))", &|x, _| (x as u64 / 9) as i64);
    check("i64(f64(x) * 0.5lf) + i64(f32(y))", &|x, y| {
        ((x as f64 * 0.5) as i64).wrapping_add((y as f32).clamp(-9.223_372e18, 9.223_371_5e18) as i64)
    });
}

#[test]
fn wide_private_array() {
    let text = "@group(0) @binding(0) var<storage, read> a: array<u64>;
        @group(0) @binding(1) var<storage, read_write> b: array<u64>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            let x = a[id.x];
            var t: array<u64, 5>;
            for (var k = 0u; k < 20u; k++) { t[k % 5u] += x >> k; }
            b[id.x] = t[u32(x % 5lu)];
        }";
    let a: Vec<u64> = (0..512_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 60)).collect();
    // The second run has fewer lanes, in a register file that the first has filled.
    for groups in [8, 3] {
        let b = Run::new(text).buffer(&a).zeros(4096).dispatch_with([groups, 1, 1], false).read::<u64>(1);
        for (x, b) in a.iter().zip(b).take(groups as usize * 64) {
            let mut t = [0_u64; 5];
            (0..20).for_each(|k| t[k % 5] = t[k % 5].wrapping_add(x >> k));
            assert_eq!(b, t[(x % 5) as usize], "{x}");
        }
    }
}

#[test]
fn halves() {
    let text = "enable f16;
        @group(0) @binding(0) var<storage, read> a: array<f16>;
        @group(0) @binding(1) var<storage, read_write> b: array<f16>;
        @group(0) @binding(2) var<storage, read_write> c: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            let x = a[id.x];
            b[id.x] = x * 3.0h + 0.1h;
            c[id.x] = pack2x16float(vec2f(f32(x) * 1.0001, 65535.0));
        }";
    let a: Vec<half::f16> = (0..256_u32).map(|i| half::f16::from_bits((i * 251 % 31000) as u16)).collect();
    let run = Run::new(text).buffer(&a).zeros(512).zeros(1024).dispatch([4, 1, 1]);
    let (b, c) = (run.read::<half::f16>(1), run.read::<u32>(2));
    for i in 0..256 {
        let product = half::f16::from_f32(a[i].to_f32() * 3.0);
        let expected = half::f16::from_f32(product.to_f32() + half::f16::from_f32(0.1).to_f32());
        assert_eq!(b[i], expected, "{}", a[i]);
        let low = half::f16::from_f32(a[i].to_f32() * 1.0001).to_bits();
        assert_eq!(c[i], u32::from(low) | 0x7c00_0000, "{}", a[i]);
    }
}

#[test]
fn vectors_and_matrices() {
    let text = "@group(0) @binding(0) var<storage, read> a: array<mat3x3f>;
        @group(0) @binding(1) var<storage, read_write> b: array<vec4f>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            let m = a[id.x];
            let v = m * vec3f(1.0, 2.0, 3.0) + vec3f(1.0, 2.0, 3.0) * m;
            let t = transpose(m) * m;
            b[id.x * 2u] = vec4f(v, determinant(m));
            b[id.x * 2u + 1u] = vec4f(t[1].xz, dot(cross(m[0], m[1]), m[2]), length(m[0].xy));
        }";
    let n = 64;
    let a: Vec<f32> = (0..n * 12).map(|i| ((i * 37) % 23) as f32 - 11.0).collect();
    let b = Run::new(text).buffer(&a).zeros(n * 32).dispatch([1, 1, 1]).read::<[f32; 8]>(1);
    for i in 0..n {
        let m = |c: usize, r: usize| a[i * 12 + c * 4 + r];
        let v: Vec<f32> = (0..3)
            .map(|k| {
                (0..3).map(|j| m(j, k) * (j + 1) as f32).sum::<f32>()
                    + (0..3).map(|j| m(k, j) * (j + 1) as f32).sum::<f32>()
            })
            .collect();
        let t = |c: usize, r: usize| (0..3).map(|k| m(r, k) * m(c, k)).sum::<f32>();
        let det = m(0, 0) * (m(1, 1) * m(2, 2) - m(2, 1) * m(1, 2)) - m(1, 0) * (m(0, 1) * m(2, 2) - m(2, 1) * m(0, 2))
            + m(2, 0) * (m(0, 1) * m(1, 2) - m(1, 1) * m(0, 2));
        let expected = [v[0], v[1], v[2], det, t(1, 0), t(1, 2), det, m(0, 0).hypot(m(0, 1))];
        for k in 0..8 {
            assert!((b[i][k] - expected[k]).abs() < 1e-3, "{i} {k}: {} instead of {}", b[i][k], expected[k]);
        }
    }
}

#[test]
fn packing() {
    let text = "@group(0) @binding(0) var<storage, read> a: array<vec4f>;
        @group(0) @binding(1) var<storage, read_write> b: array<vec4u>;
        @group(0) @binding(2) var<storage, read_write> c: array<vec4f>;
        @compute @workgroup_size(16)
        fn main(@builtin(local_invocation_index) i: u32) {
            let v = a[i];
            b[i] = vec4u(pack4x8snorm(v), pack4x8unorm(v), pack2x16snorm(v.xy), pack2x16unorm(v.zw));
            c[i] = unpack4x8snorm(b[i].x) + vec4f(unpack2x16unorm(b[i].w), 0.0, 0.0);
        }";
    let a: Vec<f32> = (0..64).map(|i| (i as f32 - 32.0) / 25.0).collect();
    let run = Run::new(text).buffer(&a).zeros(256).zeros(256).dispatch([1, 1, 1]);
    let (b, c) = (run.read::<[u32; 4]>(1), run.read::<[f32; 4]>(2));
    for i in 0..16 {
        let v = &a[i * 4..i * 4 + 4];
        let pack = |x: f32, low: f32, scale: f32| (0.5 + scale * x.clamp(low, 1.0)).floor() as i32;
        let bytes = |low, scale| (0..4).fold(0, |w, k| w | (pack(v[k], low, scale) as u32 & 0xff) << (8 * k));
        let halves = |at: usize, low, scale| {
            (0..2).fold(0, |w, k| w | (pack(v[at + k], low, scale) as u32 & 0xffff) << (16 * k))
        };
        let expected = [bytes(-1.0, 127.0), bytes(0.0, 255.0), halves(0, -1.0, 32767.0), halves(2, 0.0, 65535.0)];
        assert_eq!(b[i], expected, "{v:?}");
        for (k, c) in c[i].iter().enumerate() {
            let snorm = f32::from((expected[0] >> (8 * k)) as i8) / 127.0;
            let unorm = if k < 2 { (expected[3] >> (16 * k) & 0xffff) as f32 / 65535.0 } else { 0.0 };
            assert_eq!(*c, snorm.max(-1.0) + unorm);
        }
    }
}

#[test]
fn parts_of_floats() {
    let text = "@group(0) @binding(0) var<storage, read> a: array<f32>;
        @group(0) @binding(1) var<storage, read_write> b: array<vec4f>;
        @group(0) @binding(2) var<storage, read_write> c: array<vec4f>;
        @compute @workgroup_size(16)
        fn main(@builtin(local_invocation_index) i: u32) {
            let x = a[i];
            let parts = modf(x);
            let split = frexp(x);
            b[i] = vec4f(parts.fract, parts.whole, split.fract, f32(split.exp));
            c[i] = vec4f(ldexp(split.fract, split.exp), round(x), x % 1.5, quantizeToF16(x));
        }";
    let a = [
        0.0,
        1.0,
        -1.5,
        2.5,
        3.5,
        -0.5,
        0.49999997,
        1e-40,
        -8388609.0,
        1e10,
        65519.0,
        0.1,
        -3.75,
        7.0,
        1e-7,
        123.456_f32,
    ];
    let run = Run::new(text).buffer(&a).zeros(256).zeros(256).dispatch([1, 1, 1]);
    let (b, c) = (run.read::<[f32; 4]>(1), run.read::<[f32; 4]>(2));
    for (i, x) in a.into_iter().enumerate() {
        assert_eq!(b[i][..2], [x - x.trunc(), x.trunc()], "modf {x}");
        if x != 0.0 {
            assert!((0.5..1.0).contains(&b[i][2].abs()), "frexp {x}: {}", b[i][2]);
        }
        assert_eq!(f64::from(b[i][2]) * f64::from(b[i][3]).exp2(), f64::from(x), "frexp {x}");
        assert_eq!(c[i][0], x, "ldexp {x}");
        assert_eq!(c[i][1], x.round_ties_even(), "round {x}");
        assert_eq!(c[i][2], x % 1.5, "rem {x}");
        assert_eq!(c[i][3], half::f16::from_f32(x).to_f32(), "quantize {x}");
    }
}

#[test]
fn doubles_become_short_integers_saturated() {
    let values: [f64; 12] = [
        0.0,
        -1.5,
        32767.9,
        32768.0,
        70000.0,
        1e10,
        -32769.0,
        -70000.0,
        -1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let run = Run::new(
        "enable wgpu_int16;
        @group(0) @binding(0) var<storage> a: array<f64>;
        @group(0) @binding(1) var<storage, read_write> b: array<vec2i>;
        @compute @workgroup_size(12) fn main(@builtin(local_invocation_index) i: u32) {
            b[i] = vec2i(i32(i16(a[i])), i32(u16(a[i])));
        }",
    );
    let got = run.buffer(&values).zeros(12 * 8).dispatch([1; 3]).read::<[i32; 2]>(1);
    let expected: Vec<[i32; 2]> = values.iter().map(|v| [i32::from(*v as i16), i32::from(*v as u16)]).collect();
    assert_eq!(got, expected);
}
