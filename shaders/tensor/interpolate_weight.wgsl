// How much a pixel counts at a distance from a place, in pixels. Given: KERNEL, 1 for straight lines, 2 for cubic curves; CURVE, their parameter.

fn weight(distance: f32) -> f32 {
    let x = abs(distance);
    if KERNEL == 1u { return max(1.0 - x, 0.0); }
    // Keys's convolution.
    let near = ((CURVE + 2.0) * x - (CURVE + 3.0)) * x * x + 1.0;
    let far = ((CURVE * x - 5.0 * CURVE) * x + 8.0 * CURVE) * x - 4.0 * CURVE;
    return select(select(0.0, far, x < 2.0), near, x <= 1.0);
}
