// A prime of 31 bits in Montgomery's form with 2^32. MODULUS, INVERSE (of the modulus, modulo 2^32) and ONE precede it.
alias Fe = u32;
fn fe_zero() -> Fe { return 0u; }
fn fe_one() -> Fe { return ONE; }
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
    return fe_sub(product.y, wide_product(product.x * INVERSE, MODULUS).y);
}
