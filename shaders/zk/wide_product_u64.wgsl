// The low and the high word of a product.
fn wide_product(a: u32, b: u32) -> vec2u {
    let product = u64(a) * u64(b);
    return vec2u(u32(product & 0xfffffffflu), u32(product >> 32u));
}
