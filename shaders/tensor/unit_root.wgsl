// e^(-2 pi i k / n) for k < n <= 2^29, each part within 1e-7: by eighths of the circle, so that angles are small and what remains is a whole
// number.
fn unit_root(k: u32, n: u32) -> vec2f {
    let eighth = 8u * k / n;
    let rest = 8u * k - eighth * n;
    // From the nearer axis or diagonal.
    let turned = select(rest, n - rest, (eighth & 1u) != 0u);
    let x = 0.78539816 * (f32(turned) / f32(n));
    let s = x * x;
    let sine = ((-1.9515295891e-4 * s + 8.3321608736e-3) * s - 1.6666654611e-1) * s * x + x;
    let cosine = ((2.443315711809948e-5 * s - 1.388731625493765e-3) * s + 4.166664568298827e-2) * s * s - 0.5 * s + 1.0;
    let swapped = ((eighth + 1u) & 2u) != 0u;
    let real = select(cosine, sine, swapped);
    let imaginary = select(sine, cosine, swapped);
    return vec2f(
        select(real, -real, eighth >= 2u && eighth < 6u),
        select(-imaginary, imaginary, eighth >= 4u),
    );
}

