// Structures, three-vectors, matrices and arrays in storage lie where WGSL says.
struct Inner { a: vec3f, b: f32, c: array<vec2u, 3> }
struct Outer { m: mat3x3f, inner: array<Inner, 2>, last: vec3u }
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<Outer>;

@compute @workgroup_size(2)
fn array_strides(@builtin(local_invocation_index) place: u32) {
    let base = place * 32u;
    for (var column = 0u; column < 3u; column++) {
        for (var row = 0u; row < 3u; row++) { answer[base + column * 3u + row] = bitcast<u32>(given[place].m[column][row]); }
    }
    for (var i = 0u; i < 2u; i++) {
        let start = base + 9u + i * 10u;
        answer[start] = bitcast<u32>(given[place].inner[i].a.x);
        answer[start + 1u] = bitcast<u32>(given[place].inner[i].a.y);
        answer[start + 2u] = bitcast<u32>(given[place].inner[i].a.z);
        answer[start + 3u] = bitcast<u32>(given[place].inner[i].b);
        for (var k = 0u; k < 3u; k++) {
            answer[start + 4u + 2u * k] = given[place].inner[i].c[k].x;
            answer[start + 5u + 2u * k] = given[place].inner[i].c[k].y;
        }
    }
    answer[base + 29u] = given[place].last.x;
    answer[base + 30u] = given[place].last.y;
    answer[base + 31u] = given[place].last.z;
}
