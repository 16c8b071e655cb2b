//! Operations whose bits must be the same on every device in reproducible mode, and a kernel of WGSL's own builtins.

use cantus::ops::{self, Expr, Window, field::FieldParams};
use cantus::{DType, Engine, Kernel, Result, Tensor};

use crate::inputs::Random;

/// An operation: its name, and what it makes of an engine.
pub type Operation = (&'static str, fn(&Engine) -> Result<Vec<u32>>);

fn bits(of: Expr) -> Result<Vec<u32>> {
    let tensor = of.eval()?;
    words(&tensor)
}

fn words(tensor: &Tensor) -> Result<Vec<u32>> {
    Ok(tensor
        .to_bytes()?
        .chunks(4)
        .map(|bytes| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
        .collect())
}

/// Numbers of many sizes, some of them 0, denormal, infinite or NaN.
fn wild(engine: &Engine, shape: &[usize], seed: u64) -> Result<Tensor> {
    let mut random = Random::new(seed);
    let count = shape.iter().product();
    let values: Vec<f32> = (0..count)
        .map(|place| {
            let word = (random.u64() >> 32) as u32;
            match place % 97 {
                13 => 0.0,
                29 => -0.0,
                41 => f32::from_bits(word & 0x807f_ffff),
                53 => f32::INFINITY,
                71 => f32::from_bits(0xffc1_2345),
                _ => f32::from_bits((word & 0x807f_ffff) | ((word >> 8 & 63) + 96) << 23),
            }
        })
        .collect();
    engine.tensor_from_bytes(DType::F32, shape, bytemuck::cast_slice(&values))
}

/// Numbers from -4 to 4.
fn tame(engine: &Engine, shape: &[usize], seed: u64) -> Result<Tensor> {
    let mut random = Random::new(seed);
    let count = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|_| (random.u64() >> 40) as f32 / (1 << 21) as f32 - 4.0).collect();
    engine.tensor_from_bytes(DType::F32, shape, bytemuck::cast_slice(&values))
}

/// The operations. Names say what they are; sizes are such that sums go through every stage of their kernels.
pub const OPERATIONS: &[Operation] = &[
    ("field", |e| words(&ops::field::field(e, &FieldParams::new(61, 47))?)),
    ("phi_pattern", |e| words(&ops::field::phi_pattern(e, 67, 33)?)),
    ("coherence", |e| {
        let field = ops::field::field(e, &FieldParams::new(96, 80))?;
        Ok(vec![ops::coherence(e, &field)?.to_bits()])
    }),
    ("add and multiply", |e| bits(wild(e, &[3000], 1)? * wild(e, &[3000], 2)? + wild(e, &[3000], 3)?)),
    ("divide", |e| bits(wild(e, &[3000], 4)? / wild(e, &[3000], 5)?)),
    ("remainder", |e| bits(wild(e, &[3000], 6)?.remainder(wild(e, &[3000], 7)?))),
    ("sqrt", |e| bits(wild(e, &[3000], 8)?.sqrt())),
    ("exp", |e| bits((tame(e, &[3000], 9)? * 20.0).exp())),
    ("log", |e| bits(wild(e, &[3000], 10)?.abs().log())),
    ("pow", |e| bits(wild(e, &[3000], 11)?.abs().pow(tame(e, &[3000], 12)?))),
    ("sin", |e| bits((tame(e, &[3000], 13)? * 100.0).sin())),
    ("tan", |e| bits(tame(e, &[3000], 14)?.tan())),
    ("tanh", |e| bits(tame(e, &[3000], 15)?.tanh())),
    ("atan2", |e| bits(wild(e, &[3000], 16)?.atan2(wild(e, &[3000], 17)?))),
    ("erf and gelu", |e| bits(tame(e, &[3000], 18)?.erf() + tame(e, &[3000], 19)?.gelu())),
    ("sigmoid", |e| bits(tame(e, &[3000], 20)?.sigmoid())),
    ("lgamma", |e| bits(tame(e, &[3000], 21)?.lgamma())),
    ("maximum", |e| bits(wild(e, &[3000], 22)?.maximum(wild(e, &[3000], 23)?))),
    ("half of a float", |e| bits(wild(e, &[3000], 24)?.expr().cast(DType::F16))),
    ("float of a half", |e| bits((wild(e, &[3000], 25)?.expr().cast(DType::F16) * 3.0).cast(DType::F32))),
    ("integer of a float", |e| bits(wild(e, &[3000], 26)?.expr().cast(DType::I32))),
    ("sum", |e| bits(tame(e, &[200_000], 27)?.sum(&[], false))),
    ("sum of rows", |e| bits(tame(e, &[37, 1234], 28)?.sum(&[1], false))),
    ("sum of columns", |e| bits(tame(e, &[1234, 37], 29)?.sum(&[0], false))),
    ("mean and variance", |e| bits(tame(e, &[50, 700], 30)?.expr().variance(&[1], 1.0, false))),
    ("largest of rows", |e| bits(wild(e, &[37, 500], 31)?.max(&[1], false))),
    ("prefix sums", |e| bits(tame(e, &[3, 5000], 32)?.cumsum(1))),
    ("softmax", |e| bits(tame(e, &[21, 333], 33)?.softmax(1))),
    ("layer_norm", |e| bits(tame(e, &[21, 333], 34)?.layer_norm(tame(e, &[333], 35)?, tame(e, &[333], 36)?, 1e-5))),
    ("rms_norm", |e| bits(tame(e, &[21, 333], 37)?.rms_norm(tame(e, &[333], 38)?, 1e-6))),
    ("matmul", |e| bits(tame(e, &[70, 90], 39)?.matmul(tame(e, &[90, 50], 40)?))),
    ("matmul, long", |e| bits(tame(e, &[4, 3000], 41)?.matmul(tame(e, &[3000, 4], 42)?))),
    ("conv2d", |e| {
        bits(tame(e, &[2, 4, 19, 17], 43)?.conv2d(tame(e, &[6, 4, 3, 3], 44)?, Window::strided(1).padded(1), 1))
    }),
    ("avg_pool2d", |e| bits(tame(e, &[2, 3, 20, 20], 45)?.avg_pool2d([3, 3], Window::strided(2), true))),
    ("randn", |e| bits(ops::randn(e, &[4000], 7))),
    ("builtins", builtins),
];

/// Builtins of WGSL and operators of vectors and matrices, each of eight numbers.
pub const BUILTINS: &str = "
@group(0) @binding(0) var<storage> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
struct Pair { a: vec4f, m: mat2x2f, list: array<f32, 4> }
@group(0) @binding(2) var<storage, read_write> pairs: array<Pair>;
var<workgroup> shared_values: array<f32, 32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) place: u32) {
    let i = id.x * 8u;
    let a = vec4f(x[i], x[i + 1u], x[i + 2u], x[i + 3u]);
    let b = vec4f(x[i + 4u], x[i + 5u], x[i + 6u], x[i + 7u]);
    shared_values[place] = a.x * b.x + a.y;
    workgroupBarrier();
    let o = id.x * 64u;
    let m = mat3x3f(a.xyz, b.xyz, a.yzw * b.zyx);
    let n = mat2x4f(a, b);
    var z = array<f32, 64>();
    z[0] = dot(a, b); z[1] = length(a); z[2] = distance(a.xy, b.xy);
    let u = normalize(a.xyz); z[3] = u.x; z[4] = u.y; z[5] = u.z;
    let c = cross(a.xyz, b.xyz); z[6] = c.x; z[7] = c.y; z[8] = c.z;
    z[9] = determinant(m); z[10] = (m * b.xyz).y; z[11] = (b.xyz * m).z; z[12] = (m * m)[1].x; z[13] = (n * a.xy).w;
    z[14] = (transpose(n) * n)[0].y; z[15] = (m * 3.0 - m)[2].y;
    z[16] = mix(a.x, b.x, 0.25); z[17] = smoothstep(-1.0, 2.0, a.x); z[18] = step(a.x, b.x); z[19] = fma(a.x, b.x, a.y);
    z[20] = inverseSqrt(abs(a.x) + 0.1); z[21] = fract(a.y); z[22] = modf(a.z).fract; z[23] = frexp(a.w).fract;
    z[24] = f32(frexp(vec2f(a.x, b.x)).exp.y); z[25] = ldexp(a.x, 3); z[26] = degrees(b.y); z[27] = radians(b.z);
    z[28] = asin(clamp(a.x, -1.0, 1.0)); z[29] = acos(clamp(a.y, -1.0, 1.0)); z[30] = atan(a.z); z[31] = sinh(a.w);
    z[32] = cosh(b.x); z[33] = asinh(b.y); z[34] = acosh(abs(b.z) + 1.0); z[35] = atanh(clamp(b.w, -0.9, 0.9));
    z[36] = exp2(a.x); z[37] = log2(abs(a.y)); z[38] = sign(a.z); z[39] = round(a.w); z[40] = floor(b.x); z[41] = ceil(b.y); z[42] = trunc(b.z);
    z[43] = reflect(a.xy, b.xy).y; z[44] = refract(u, normalize(b.xyz), 0.7).x; z[45] = faceForward(a.xyz, b.xyz, u).z;
    z[46] = saturate(b.w); z[47] = a.x % b.x; z[48] = quantizeToF16(a.y); z[49] = -a.z; z[50] = f32(i32(a.w)) + f32(u32(b.x));
    z[51] = bitcast<f32>(pack4x8snorm(a)); z[52] = bitcast<f32>(pack4x8unorm(b)); z[53] = bitcast<f32>(pack2x16snorm(a.xy));
    z[54] = unpack4x8snorm(bitcast<u32>(a.x)).z; z[55] = unpack2x16unorm(bitcast<u32>(a.y)).y; z[56] = unpack2x16float(bitcast<u32>(b.x)).x;
    z[57] = f32(a.x < b.x) + 2.0 * f32(a.y != b.y) + 4.0 * f32(a.z >= b.z) + 8.0 * f32(all(a == b)); z[58] = shared_values[31u - place];
    z[59] = select(a.x, b.x, bool(a.y)); z[60] = max(a.x, b.x); z[61] = min(a.y, b.y); z[62] = a.x / b.x; z[63] = pow(abs(a.x), b.y);
    for (var k = 0u; k < 64u; k++) { y[o + k] = z[k]; }
    var pair = pairs[id.x];
    pair.m = pair.m * 0.3 + mat2x2f(a.xy, b.xy);
    pair.list[1] = pair.list[0] * pair.list[2] + pair.a.x;
    pairs[id.x] = pair;
}";

/// Returns the inputs of the builtins' kernel: its tensors x, y and pairs. Four workgroups take them.
pub fn given(engine: &Engine) -> Result<[Tensor; 3]> {
    Ok([wild(engine, &[128 * 8], 46)?, engine.zeros::<f32>(&[128 * 64])?, tame(engine, &[128 * 12], 47)?])
}

/// Returns its results: y and pairs.
pub fn builtins(engine: &Engine) -> Result<Vec<u32>> {
    let kernel = Kernel::from_wgsl(BUILTINS)?;
    let [x, y, pairs] = given(engine)?;
    engine.dispatch(&kernel).bind("x", &x).bind("y", &y).bind_raw("pairs", &pairs).workgroups(4).run()?;
    let mut all = words(&y)?;
    all.extend(words(&pairs)?);
    Ok(all)
}

/// The operations, of those whose number has its turn, whose bits on an engine are not the reference's, with the first difference.
pub fn differences(reference: &Engine, engine: &Engine, has_turn: impl Fn(u64) -> bool) -> Vec<String> {
    let asked = (0..).zip(OPERATIONS).filter(|(number, _)| has_turn(*number)).map(|(_, operation)| operation);
    let compared = asked.filter_map(|(name, run)| {
        let expected = run(reference).unwrap_or_else(|error| panic!("{name}: {error}"));
        match run(engine) {
            Err(error) => Some(format!("{name}: {error}")),
            Ok(found) => {
                let place = expected.iter().zip(&found).position(|(a, b)| a != b)?;
                let count = expected.iter().zip(&found).filter(|(a, b)| a != b).count();
                Some(format!(
                    "{name}: {count} of {} differ, at {place}: {:#x} and {:#x}",
                    expected.len(),
                    expected[place],
                    found[place]
                ))
            }
        }
    });
    compared.collect()
}
