//! 32-bit integer arithmetic: every operator and builtin, with wrap-around, division by zero and shift rules.

use crate::case::Case;
use crate::inputs::{pairs_i32, pairs_u32};

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(binary());
    cases
}

/// WGSL: x / 0 = x, MIN / -1 = MIN.
pub fn div_i32(a: i32, b: i32) -> i32 {
    if b == 0 { a } else { a.wrapping_div(b) }
}

/// WGSL: x % 0 = 0, MIN % -1 = 0.
pub fn rem_i32(a: i32, b: i32) -> i32 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

fn binary() -> Vec<Case> {
    type I = fn(i32, i32) -> i32;
    type U = fn(u32, u32) -> u32;
    let signed: [(&str, &str, I); 13] = [
        ("add", "a[i] + b[i]", i32::wrapping_add),
        ("sub", "a[i] - b[i]", i32::wrapping_sub),
        ("mul", "a[i] * b[i]", i32::wrapping_mul),
        ("div", "a[i] / b[i]", div_i32),
        ("rem", "a[i] % b[i]", rem_i32),
        ("and", "a[i] & b[i]", |a, b| a & b),
        ("or", "a[i] | b[i]", |a, b| a | b),
        ("xor", "a[i] ^ b[i]", |a, b| a ^ b),
        ("shl", "a[i] << u32(b[i])", |a, b| a.wrapping_shl(b as u32)),
        ("shr", "a[i] >> u32(b[i])", |a, b| a.wrapping_shr(b as u32)),
        ("min", "min(a[i], b[i])", i32::min),
        ("max", "max(a[i], b[i])", i32::max),
        ("compare", "i32(a[i] < b[i]) | i32(a[i] <= b[i]) << 1u | i32(a[i] > b[i]) << 2u | i32(a[i] >= b[i]) << 3u | \
          i32(a[i] == b[i]) << 4u | i32(a[i] != b[i]) << 5u",
         |a, b| compare(a.cmp(&b)) as i32),
    ];
    let unsigned: [(&str, &str, U); 13] = [
        ("add", "a[i] + b[i]", u32::wrapping_add),
        ("sub", "a[i] - b[i]", u32::wrapping_sub),
        ("mul", "a[i] * b[i]", u32::wrapping_mul),
        ("div", "a[i] / b[i]", |a, b| a.checked_div(b).unwrap_or(a)),
        ("rem", "a[i] % b[i]", |a, b| a.checked_rem(b).unwrap_or(0)),
        ("and", "a[i] & b[i]", |a, b| a & b),
        ("or", "a[i] | b[i]", |a, b| a | b),
        ("xor", "a[i] ^ b[i]", |a, b| a ^ b),
        ("shl", "a[i] << b[i]", u32::wrapping_shl),
        ("shr", "a[i] >> b[i]", u32::wrapping_shr),
        ("min", "min(a[i], b[i])", u32::min),
        ("max", "max(a[i], b[i])", u32::max),
        ("compare", "u32(a[i] < b[i]) | u32(a[i] <= b[i]) << 1u | u32(a[i] > b[i]) << 2u | u32(a[i] >= b[i]) << 3u | \
          u32(a[i] == b[i]) << 4u | u32(a[i] != b[i]) << 5u",
         |a, b| compare(a.cmp(&b))),
    ];
    let (a, b) = pairs_i32(1);
    let signed = signed.map(|(name, expression, oracle)| {
        let expected: Vec<i32> = a.iter().zip(&b).map(|(&a, &b)| oracle(a, b)).collect();
        Case::each(format!("integer.{name}_i32"), expression).read("a", &a).read("b", &b).write("out", expected).invocations(a.len())
    });
    let (a, b) = pairs_u32(2);
    let unsigned = unsigned.map(|(name, expression, oracle)| {
        let expected: Vec<u32> = a.iter().zip(&b).map(|(&a, &b)| oracle(a, b)).collect();
        Case::each(format!("integer.{name}_u32"), expression).read("a", &a).read("b", &b).write("out", expected).invocations(a.len())
    });
    signed.into_iter().chain(unsigned).collect()
}

/// The bits `<`, `<=`, `>`, `>=`, `==`, `!=`, from bit 0 on.
pub fn compare(order: std::cmp::Ordering) -> u32 {
    use std::cmp::Ordering::{Equal, Greater, Less};
    match order {
        Less => 0b10_0011,
        Equal => 0b01_1010,
        Greater => 0b10_1100,
    }
}
