//! The kernels with known answers: what each is given, how it is dispatched, and what it must answer. The expected words are computed here, on
//! the host, by another way than the kernel's.

use crate::kernel::Need;
use cantus_base::listed::Listed;

/// A kernel with known answers.
pub(super) struct Answer {
    pub(super) need: Need,
    pub(super) wgsl: &'static str,
    pub(super) given: &'static [u32],
    pub(super) workgroups: [u32; 3],
    /// The words it must answer.
    pub(super) expected: fn(&Answer) -> Vec<u32>,
}

macro_rules! answers {
    ($($need:ident, $file:ident, $given:expr, $workgroups:expr, $expected:expr;)*) => {
        pub(super) static ANSWERS: &[Answer] = &[$(Answer {
            need: Need::$need,
            wgsl: cantus_shaders::answers::$file,
            given: $given,
            workgroups: $workgroups,
            expected: $expected,
        },)*];
    };
}

const MAX: u32 = i32::MAX as u32;
const MIN: u32 = i32::MIN as u32;
const fn f(value: f32) -> u32 {
    value.to_bits()
}
/// The bits of 1.0: words from here on are ordinary floats, which no device flushes to zero.
const ONE: u32 = f(1.0);
/// Words that count up from [`ONE`].
const fn counting<const COUNT: usize>() -> [u32; COUNT] {
    let mut words = [ONE; COUNT];
    let mut i = 0;
    while i < COUNT {
        words[i] += i as u32;
        i += 1;
    }
    words
}
/// Two elements of `Outer`.
const STORAGE: [u32; 80] = counting();
/// One `Block`.
const UNIFORM: [u32; 24] = counting();

answers! {
    Ids, IDS, &[], [3, 2, 2], |_| words(192, |i| 1_000_000 + i % 12 + 100 * (i / 12 % 4) + 10_000 * (i / 48));
    IntegerArithmetic, INTEGER_ARITHMETIC, &[MAX, MIN], [1, 1, 1],
        |_| vec![MIN, 0, MAX, 1, MIN, MIN, 0xf800_0000, MIN ^ 5];
    Floats, FLOATS, &[f(1.5), f(1.0)], [1, 1, 1],
        |_| vec![f(2.5), f(0.5), f(-10.0), f(2.0), 6, f(2.0), f(10.5), f(3.0)];
    Conditions, CONDITIONS, &[], [1, 1, 1], |_| words(16, conditions);
    Loops, LOOPS, &[9], [1, 1, 1], |_| (0..16).flat_map(loops).listed();
    LongLoops, LONG_LOOPS, &[300, 70_000, 12_345], [1, 1, 1], |answer| long_loops(answer.given);
    Switches, SWITCHES, &[20], [1, 1, 1], |_| words(16, switches);
    ManyCases, MANY_CASES, &[1000, 1050, 1099, 1119, 5000, 1030, 1078, 1090], [1, 1, 1],
        |answer| many_cases(answer.given);
    IntegerDivision, INTEGER_DIVISION,
        &[7, 0, -7_i32 as u32, 2, MIN, -1_i32 as u32, MIN, 0, 100, -7_i32 as u32, -1_i32 as u32, 3, 5, 5, 0, -3_i32 as u32], [1, 1, 1],
        |answer| answer.given.chunks(2).flat_map(|pair| division(pair[0], pair[1])).listed();
    Shifts, SHIFTS, &[0, 1, 31, 32, 33, 63, 4, 100], [1, 1, 1],
        |answer| answer.given.iter().flat_map(|&by| shifts(by & 31)).listed();
    Bits, BITS, &[0, u32::MAX, 0x00f0_0100, 0x8000_0001, 28, 8], [1, 1, 1],
        |answer| answer.given[..4].iter().flat_map(|&x| bits(x)).listed();
    FloatToInt, FLOAT_TO_INT,
        &[f(1.9), f(-1.9), f(3e9), f(-3e9), f(5e9), f(-5.0), f(0.0), f(2_147_483_520.0)], [1, 1, 1],
        |answer| answer.given.iter().flat_map(|&bits| float_to_int(f32::from_bits(bits))).listed();
    Packing, PACKING, &[f(0.0), f(1.0), f(0.5), f(-1.0)], [1, 1, 1],
        |_| vec![0x0080_ff00, 0x8140_7f00, 0xffff_0000, 0x8001_4000, 0x3c00_3800, f(0.5), f(1.0), f(0.0)];
    DynamicIndexing, DYNAMIC_INDEXING, &[5, 2, 7, 0, 3, 6, 1, 4], [1, 1, 1],
        |answer| (0..8).flat_map(|place| dynamic_indexing(answer.given, place)).listed();
    PrivateMemory, PRIVATE_MEMORY, &[], [4, 1, 1], |_| words(256, |x| 2 * x + 1 + 1000 * (18 + 2 * x));
    Pointers, POINTERS, &[], [1, 1, 1],
        |_| words(16, |place| 100 * place + place + (2 + 100 * place) + 7 * (3 + place) + 2);
    Matrices, MATRICES, &[f(1.0), f(2.0), f(3.0), f(4.0), f(5.0), f(6.0)], [1, 1, 1],
        |_| vec![531, 642, 2001, 6005, 6422, 25, 33];
    ArrayStrides, ARRAY_STRIDES, &STORAGE, [1, 1, 1],
        |_| (0..2).flat_map(|element| STRIDES.map(|word| ONE + 40 * element + word)).listed();
    UniformLayout, UNIFORM_LAYOUT, &UNIFORM, [1, 1, 1],
        |_| [0, 1, 2, 3, 4, 8, 10, 11, 12, 15, 16, 19, 20, 21].map(|word| ONE + word).to_vec();
    WorkgroupZeroed, WORKGROUP_ZEROED, &[], [64, 1, 1],
        |_| words(64 * 128, |i| if i % 128 < 64 { 0 } else { 0xdead_0000 + i / 128 });
    WorkgroupSums, WORKGROUP_SUMS, &[], [8, 1, 1],
        |_| words(8, |group| (0..128).map(|place| place * place + group).sum());
    BarriersInLoops, BARRIERS_IN_LOOPS, &[37], [1, 1, 1], |_| words(64, |place| (place + 37) % 64);
    BarriersUnderConditions, BARRIERS_UNDER_CONDITIONS, &[1], [1, 1, 1],
        |_| words(64, |place| if place > 31 { 263 - place } else { 463 - place });
    Atomics, ATOMICS, &[], [4, 1, 1], |_| vec![32_640, 255, 0, u32::MAX, 8_320, 768];
    Subgroups, SUBGROUPS, &[], [1, 1, 1], |_| vec![31; 128];
    // 0.5, 1.0, 2.5 and 8.0 as halves.
    Halves, HALVES, &[0x3c00_3800, 0x4800_4100], [1, 1, 1], |_| vec![38, 24, 22, 32, 34, 40, 98, 128];
    WideIntegers, WIDE_INTEGERS, &[0x1234_5678, 0x9abc_def0, 1_000_003], [1, 1, 1], |answer| wide(answer.given);
    Doubles, DOUBLES, &[4_000_000_000, 3], [1, 1, 1], |_| vec![3, 3, 1, 3];
    LargeDispatch, LARGE_DISPATCH, &[], [70_000, 1, 1], |_| words(140_000, |id| id / 2 * 2 + 1);
    CooperativeMatrices, COOPERATIVE_MATRICES, &[], [1, 1, 1],
        |_| words(256, |i| i + (0..16).map(|k| (i / 16 * 16 + k) % 7 * ((i % 16 * 16 + k) % 5)).sum::<u32>());
    SmallCooperativeMatrices, SMALL_COOPERATIVE_MATRICES, &[], [1, 1, 1],
        |_| words(64, |i| i + (0..8).map(|k| (i / 8 * 8 + k) % 7 * ((i % 8 * 8 + k) % 5)).sum::<u32>());
    SameBits, SAME_BITS, &[0x2545_f491], [4, 1, 1],
        |answer| (0..256).flat_map(|place| same_bits(answer.given[0], place)).listed();
}

/// Offsets of the members of `Outer`, in words of its 40, in the order in which the kernel copies them.
const STRIDES: [u32; 32] = [
    0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 36, 37,
    38,
];

fn words(count: u32, word: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..count).map(word).listed()
}

fn conditions(place: u32) -> u32 {
    let asked = u32::from(place > 7) + u32::from(place >= 4);
    let taken = u32::from(place > 7 && place.is_multiple_of(2)) + 10 * u32::from(place < 4 || place == 9);
    let flags = 100 * u32::from(place > 4) + 200 * u32::from(place == 3);
    taken + 1000 * asked + flags + 100_000 * (u32::from(place > 7) + 12)
}

fn loops(place: u32) -> [u32; 2] {
    let (mut a, mut b, mut rounds) = (0_u32, 1_u32, 0);
    loop {
        if rounds % 3 == 1 {
            a = a.wrapping_add(100);
        } else {
            (a, b) = (b, a.wrapping_add(b));
        }
        rounds += 1;
        if rounds >= place + 9 {
            break;
        }
    }
    // i * 10 + j with j at most i + 1, both below 9.
    let (i, j) = (place * 3 / 10, place * 3 % 10);
    [a ^ (b << 8), if i < 9 && j < 9 && j <= i + 1 { 1000 + i * j } else { 7 }]
}

fn long_loops(given: &[u32]) -> Vec<u32> {
    let step = |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) ^ (x >> 15);
    let first = (0..given[0] * given[0]).fold(given[2], step);
    vec![first, (0..given[1]).fold(first, step)]
}

fn switches(place: u32) -> u32 {
    let round = |i: u32| match (i + place) % 7 {
        0 | 3 => 1,
        5 => 100_100,
        6 if i > 4 => 0,
        6 => 101_000,
        _ => 100_010,
    };
    (0..20).map(round).sum()
}

fn many_cases(given: &[u32]) -> Vec<u32> {
    let place =
        |word: u32, count: u32, other: u32| word.checked_sub(1000).filter(|place| *place < count).unwrap_or(other);
    let switched = given.iter().map(|&word| place(word, 120, 777));
    switched.chain(given.iter().map(|&word| place(word, 100, 888))).listed()
}

fn division(a: u32, b: u32) -> [u32; 4] {
    let (signed_a, signed_b) = (a as i32, b as i32);
    let quotient = signed_a.checked_div(signed_b).unwrap_or(signed_a);
    let remainder = signed_a.checked_rem(signed_b).unwrap_or(0);
    [quotient as u32, remainder as u32, a.checked_div(b).unwrap_or(a), a.checked_rem(b).unwrap_or(0)]
}

fn shifts(by: u32) -> [u32; 3] {
    [0x8000_0001 << by, 0x8000_0001 >> by, (0x8000_0001_u32 as i32 >> by) as u32]
}

/// Expected results with an offset of 28 and a count of 8, of which four bits are left.
fn bits(x: u32) -> [u32; 9] {
    let found = |position: Option<u32>| position.unwrap_or(u32::MAX);
    [
        x.count_ones(),
        x.leading_zeros(),
        x.trailing_zeros(),
        found(x.checked_ilog2()),
        found((x != 0).then(|| x.trailing_zeros())),
        x.reverse_bits(),
        x >> 28,
        (x as i32 >> 28) as u32,
        x | 0xf000_0000,
    ]
}

/// The nearest float that the integer holds: 2147483520 is the largest below 2^31.
fn float_to_int(x: f32) -> [u32; 2] {
    [x.clamp(-2_147_483_648.0, 2_147_483_520.0) as i32 as u32, x.clamp(0.0, 4_294_967_040.0) as u32]
}

fn dynamic_indexing(given: &[u32], place: usize) -> [u32; 3] {
    let mut list: Vec<u32> = (0..8).map(|i| i * i + place as u32).listed();
    let index = given[place] as usize;
    list[index] += 1000;
    let mut vector = [1, 2, 3, 4];
    vector[index % 4] += 40;
    let mut matrix = [[1, 2, 3, 4], [5, 6, 7, 8]];
    matrix[index % 2][index % 4] = 0;
    [
        list[given[(place + 1) % 8] as usize] + list[index],
        vector[0] + 10 * vector[1] + 100 * vector[2] + 1000 * vector[3],
        matrix[0].iter().sum::<u32>() + 100 * matrix[1].iter().sum::<u32>(),
    ]
}

/// Rounded, zero where it is small, and NaN in one form.
fn kept(x: f32) -> f32 {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    if magnitude <= 0x0080_0000 {
        0.0
    } else if magnitude > 0x7f80_0000 {
        f32::from_bits(0x7fc0_0000)
    } else {
        x
    }
}

fn hashed(word: u32) -> u32 {
    let state = word.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let mixed = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
    (mixed >> 22) ^ mixed
}

/// Ten results of three numbers between 2^-31 and 2^33.
fn same_bits(seed: u32, place: u32) -> [u32; 10] {
    let draw = |i: u32| hashed(seed.wrapping_add(3 * place + i));
    let with_exponent = |word: u32, exponent: u32| f32::from_bits((word & 0x807f_ffff) | (exponent << 23));
    let number = |i| with_exponent(draw(i), 96 + (draw(i) >> 23 & 63));
    let (a, b, c) = (number(0), number(1), number(2));
    let unit = |i: u32| with_exponent(draw(i) & 0x7fff_ffff, 127);
    let (x, y, z) = (unit(0), unit(1), unit(2));
    let small = |i: u32| with_exponent(draw(i), 60 + (draw(i) >> 23 & 7));
    let sum = |a: f32, b: f32| kept(a + b);
    let product = |a: f32, b: f32| kept(a * b);
    let chain = sum(product(sum(product(sum(product(x, y), z), y), x), y), -z);
    let halves = |x: f32| u32::from(half::f16::from_f32(x).to_bits());
    [
        sum(a, b),
        sum(product(a, b), c),
        sum(product(a, b), -product(c, a)),
        kept(a / b),
        kept(c.abs().sqrt()),
        chain,
        product(small(0), small(1)),
        sum(sum(sum(a, b), c), -sum(a, sum(b, c))),
        f32::from_bits(halves(a) | halves(b) << 16),
        f32::from_bits(float_to_int(c)[0]),
    ]
    .map(f32::to_bits)
}

fn wide(given: &[u32]) -> Vec<u32> {
    let (high, low, factor) = (u64::from(given[0]), u64::from(given[1]), u64::from(given[2]));
    let a = high << 32 | low;
    let (product, quotient) = (a.wrapping_mul(factor), a / factor);
    let negative = -(i64::from(given[1])) * 5;
    vec![
        product as u32,
        (product >> 32) as u32,
        quotient as u32,
        (quotient >> 32) as u32,
        (negative >> 33) as u32,
        u32::from(negative < 0),
    ]
}
