// The prime 2^64 - 2^32 + 1: x is the low word, y the high one.
alias Fe = vec2u;
fn fe_zero() -> Fe { return vec2u(0u, 0u); }
fn fe_one() -> Fe { return vec2u(1u, 0u); }
fn fe_is_zero(a: Fe) -> bool { return (a.x | a.y) == 0u; }
fn fe_equal(a: Fe, b: Fe) -> bool { return a.x == b.x && a.y == b.y; }
fn fe_plus(a: vec2u, b: vec2u) -> vec2u {
    let low = a.x + b.x;
    return vec2u(low, a.y + b.y + u32(low < a.x));
}
fn fe_minus(a: vec2u, b: vec2u) -> vec2u { return vec2u(a.x - b.x, a.y - b.y - u32(a.x < b.x)); }
fn fe_below(a: vec2u, b: vec2u) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
// Below the modulus, for any two words.
fn fe_reduce(a: vec2u) -> Fe {
    if fe_below(a, vec2u(1u, 0xffffffffu)) { return a; }
    return fe_minus(a, vec2u(1u, 0xffffffffu));
}
fn fe_add(a: Fe, b: Fe) -> Fe {
    let sum = fe_plus(a, b);
    // What passed 2^64 is 2^32 - 1.
    if fe_below(sum, a) { return fe_plus(sum, vec2u(0xffffffffu, 0u)); }
    return fe_reduce(sum);
}
fn fe_sub(a: Fe, b: Fe) -> Fe {
    let difference = fe_minus(a, b);
    if fe_below(a, b) { return fe_minus(difference, vec2u(0xffffffffu, 0u)); }
    return difference;
}
fn fe_neg(a: Fe) -> Fe { return fe_sub(vec2u(0u, 0u), a); }
fn fe_mul(a: Fe, b: Fe) -> Fe {
    let low = wide_product(a.x, b.x);
    let one = wide_product(a.x, b.y);
    let two = wide_product(a.y, b.x);
    let high = wide_product(a.y, b.y);
    // Words 1, 2 and 3 of the product.
    let first = low.y + one.x;
    let carry = u32(first < low.y);
    let second = first + two.x;
    let middle = fe_plus(fe_plus(high, vec2u(one.y, 0u)), vec2u(two.y, 0u));
    let upper = fe_plus(middle, vec2u(carry + u32(second < first), 0u));
    // 2^96 is -1, and 2^64 is 2^32 - 1.
    let base = vec2u(low.x, second);
    var sum = fe_minus(base, vec2u(upper.y, 0u));
    if fe_below(base, vec2u(upper.y, 0u)) { sum = fe_minus(sum, vec2u(0xffffffffu, 0u)); }
    let folded = fe_minus(vec2u(0u, upper.x), vec2u(upper.x, 0u));
    let result = fe_plus(sum, folded);
    if fe_below(result, sum) { return fe_reduce(fe_plus(result, vec2u(0xffffffffu, 0u))); }
    return fe_reduce(result);
}
