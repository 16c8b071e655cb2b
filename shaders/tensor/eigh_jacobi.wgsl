// A round of Jacobi's method for symmetric matrices: each row is rotated with another one so that their common element becomes 0. An invocation
// makes four elements of the matrix, those of two pairs, and four of the vectors. words[0] = (rows, an even number, round, matrices).
// Given: pair; element(i) -> f32, the matrix and then the vectors, for each of the matrices; y, which is like it.

struct Turn {
    p: u32,
    q: u32,
    cosine: f32,
    sine: f32,
    tangent: f32,
    shared_element: f32,
}

// The rotation of a pair, by the smaller angle.
fn turn(base: u32, number: u32) -> Turn {
    let n = words[0].x;
    let found = pair(words[0].y, number, n);
    let both = element(base + found.x * n + found.y);
    let difference = element(base + found.y * n + found.y) - element(base + found.x * n + found.x);
    let root = sqrt(difference * difference + 4.0 * both * both);
    let divisor = difference + select(-root, root, difference >= 0.0);
    var tangent = 0.0;
    if divisor != 0.0 { tangent = 2.0 * both / divisor; }
    let cosine = 1.0 / sqrt(1.0 + tangent * tangent);
    return Turn(found.x, found.y, cosine, tangent * cosine, tangent, both);
}

@compute @workgroup_size(64)
fn eigh_jacobi(@builtin(global_invocation_id) id: vec3u) {
    let n = words[0].x;
    let half = n / 2u;
    if id.x >= half * half * words[0].z { return; }
    let base = id.x / (half * half) * (2u * n * n);
    let place = id.x % (half * half);
    let u = turn(base, place / half);
    let v = turn(base, place % half);
    let pr = element(base + u.p * n + v.p);
    let ps = element(base + u.p * n + v.q);
    let qr = element(base + u.q * n + v.p);
    let qs = element(base + u.q * n + v.q);
    // Columns, then rows.
    let p_first = v.cosine * pr - v.sine * ps;
    let p_second = v.sine * pr + v.cosine * ps;
    let q_first = v.cosine * qr - v.sine * qs;
    let q_second = v.sine * qr + v.cosine * qs;
    var made = vec4f(
        u.cosine * p_first - u.sine * q_first,
        u.cosine * p_second - u.sine * q_second,
        u.sine * p_first + u.cosine * q_first,
        u.sine * p_second + u.cosine * q_second,
    );
    if u.p == v.p {
        made = vec4f(pr - u.tangent * u.shared_element, 0.0, 0.0, qs + u.tangent * u.shared_element);
    }
    y[base + u.p * n + v.p] = made.x;
    y[base + u.p * n + v.q] = made.y;
    y[base + u.q * n + v.p] = made.z;
    y[base + u.q * n + v.q] = made.w;
    let vectors = base + n * n;
    for (var i = 2u * (place / half); i < 2u * (place / half) + 2u; i++) {
        let one = element(vectors + i * n + v.p);
        let two = element(vectors + i * n + v.q);
        y[vectors + i * n + v.p] = v.cosine * one - v.sine * two;
        y[vectors + i * n + v.q] = v.sine * one + v.cosine * two;
    }
}
