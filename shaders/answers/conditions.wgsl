// && and || ask their right side only when it matters; comparisons of vectors select by component.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;

var<private> asked: u32;

fn ask(value: bool) -> bool { asked += 1u; return value; }

@compute @workgroup_size(16)
fn conditions(@builtin(local_invocation_index) place: u32) {
    var taken = 0u;
    if place > 7u && ask(place % 2u == 0u) { taken += 1u; }
    if place < 4u || ask(place == 9u) { taken += 10u; }
    let v = vec4u(place, 5u, 10u, 15u);
    let chosen = select(vec4u(0u), vec4u(1u, 2u, 4u, 8u), v > vec4u(7u));
    let flags = select(0u, 100u, all(v > vec4u(4u))) + select(0u, 200u, any(v == vec4u(3u)));
    answer[place] = taken + 1000u * asked + flags + 100000u * (chosen.x | chosen.y | chosen.z | chosen.w);
}
