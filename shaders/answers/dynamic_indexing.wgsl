// Elements of local arrays, vectors and matrices by an index that is known at run time only.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

@compute @workgroup_size(8)
fn dynamic_indexing(@builtin(local_invocation_index) place: u32) {
    var list: array<u32, 8>;
    for (var i = 0u; i < 8u; i++) { list[i] = i * i + place; }
    var v = vec4u(1u, 2u, 3u, 4u);
    v[given[place] % 4u] += 40u;
    var m = mat2x4f(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0);
    m[given[place] % 2u][given[place] % 4u] = 0.0;
    list[given[place]] += 1000u;
    answer[3u * place] = list[given[(place + 1u) % 8u]] + list[given[place]];
    answer[3u * place + 1u] = v.x + 10u * v.y + 100u * v.z + 1000u * v.w;
    answer[3u * place + 2u] = u32(dot(m[0], vec4f(1.0)) + 100.0 * dot(m[1], vec4f(1.0)));
}
