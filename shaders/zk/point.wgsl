// Points of y² = x³ + b in homogeneous coordinates, x = X / Z and y = Y / Z; infinity is (0, 1, 0). The formulas hold for all points of groups of
// odd order (Renes, Costello, Batina, 2015, algorithms 7 to 9). `triple_b` gives 3 b times an element.
struct Point { x: Fe, y: Fe, z: Fe }
struct Affine { x: Fe, y: Fe }

fn infinity() -> Point { return Point(fe_zero(), fe_one(), fe_zero()); }
fn is_affine_infinity(p: Affine) -> bool { return fe_is_zero(p.x) && fe_is_zero(p.y); }
fn from_affine(p: Affine) -> Point {
    if is_affine_infinity(p) { return infinity(); }
    return Point(p.x, p.y, fe_one());
}

// What both sums end in: t0 = X1 X2, t1 = Y1 Y2, t3 = X1 Y2 + X2 Y1, t4 = Y1 Z2 + Y2 Z1, w = X1 Z2 + X2 Z1, t2 = Z1 Z2.
fn point_joined(t0: Fe, t1: Fe, t2: Fe, t3: Fe, t4: Fe, w: Fe) -> Point {
    let x = fe_add(fe_add(t0, t0), t0);
    let z = triple_b(t2);
    let plus = fe_add(t1, z);
    let minus = fe_sub(t1, z);
    let y = triple_b(w);
    return Point(
        fe_sub(fe_mul(t3, minus), fe_mul(t4, y)),
        fe_add(fe_mul(minus, plus), fe_mul(y, x)),
        fe_add(fe_mul(plus, t4), fe_mul(x, t3)),
    );
}

fn point_add(p: Point, q: Point) -> Point {
    let t0 = fe_mul(p.x, q.x);
    let t1 = fe_mul(p.y, q.y);
    let t2 = fe_mul(p.z, q.z);
    let t3 = fe_sub(fe_mul(fe_add(p.x, p.y), fe_add(q.x, q.y)), fe_add(t0, t1));
    let t4 = fe_sub(fe_mul(fe_add(p.y, p.z), fe_add(q.y, q.z)), fe_add(t1, t2));
    let w = fe_sub(fe_mul(fe_add(p.x, p.z), fe_add(q.x, q.z)), fe_add(t0, t2));
    return point_joined(t0, t1, t2, t3, t4, w);
}

// The second point is not infinity.
fn point_add_affine(p: Point, q: Affine) -> Point {
    let t0 = fe_mul(p.x, q.x);
    let t1 = fe_mul(p.y, q.y);
    let t3 = fe_sub(fe_mul(fe_add(q.x, q.y), fe_add(p.x, p.y)), fe_add(t0, t1));
    let t4 = fe_add(fe_mul(q.y, p.z), p.y);
    let w = fe_add(fe_mul(q.x, p.z), p.x);
    return point_joined(t0, t1, p.z, t3, t4, w);
}

fn point_double(p: Point) -> Point {
    let yy = fe_mul(p.y, p.y);
    let two = fe_add(yy, yy);
    let four = fe_add(two, two);
    let eight = fe_add(four, four);
    let b = triple_b(fe_mul(p.z, p.z));
    let rest = fe_sub(yy, fe_add(fe_add(b, b), b));
    let xy = fe_mul(rest, fe_mul(p.x, p.y));
    return Point(
        fe_add(xy, xy),
        fe_add(fe_mul(b, eight), fe_mul(rest, fe_add(yy, b))),
        fe_mul(fe_mul(p.y, p.z), eight),
    );
}
