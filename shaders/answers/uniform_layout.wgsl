// Matrices of two rows and structures in a uniform block lie where WGSL says, not where std140 does.
struct Part { a: vec3u, b: u32 }
struct Block { m: mat2x2f, first: u32, part: Part, list: array<vec4u, 2>, last: vec2u }
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<uniform> given: Block;

@compute @workgroup_size(1)
fn uniform_layout() {
    answer[0] = bitcast<u32>(given.m[0].x);
    answer[1] = bitcast<u32>(given.m[0].y);
    answer[2] = bitcast<u32>(given.m[1].x);
    answer[3] = bitcast<u32>(given.m[1].y);
    answer[4] = given.first;
    answer[5] = given.part.a.x;
    answer[6] = given.part.a.z;
    answer[7] = given.part.b;
    for (var i = 0u; i < 2u; i++) {
        answer[8u + 2u * i] = given.list[i].x;
        answer[9u + 2u * i] = given.list[i].w;
    }
    answer[12] = given.last.x;
    answer[13] = given.last.y;
}
