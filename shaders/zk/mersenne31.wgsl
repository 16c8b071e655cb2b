// The prime 2^31 - 1.
alias Fe = u32;
const MODULUS = 0x7fffffffu;
fn fe_zero() -> Fe { return 0u; }
fn fe_one() -> Fe { return 1u; }
fn fe_is_zero(a: Fe) -> bool { return a == 0u; }
fn fe_equal(a: Fe, b: Fe) -> bool { return a == b; }
fn fe_add(a: Fe, b: Fe) -> Fe {
    let sum = a + b;
    return min(sum, sum - MODULUS);
}
fn fe_sub(a: Fe, b: Fe) -> Fe {
    let difference = a - b;
    return min(difference, difference + MODULUS);
}
fn fe_neg(a: Fe) -> Fe { return fe_sub(0u, a); }
fn fe_mul(a: Fe, b: Fe) -> Fe {
    let product = wide_product(a, b);
    return fe_add(product.x & MODULUS, (product.y << 1u) | (product.x >> 31u));
}
