// A switch in a loop: a default among the cases, several selectors, a continue and a break.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

@compute @workgroup_size(16)
fn switches(@builtin(local_invocation_index) place: u32) {
    var sum = 0u;
    for (var i = 0u; i < given[0]; i++) {
        switch (i + place) % 7u {
            case 0u, 3u: { sum += 1u; continue; }
            default: { sum += 10u; }
            case 5u: { sum += 100u; break; }
            case 6u: { if i > 4u { continue; } sum += 1000u; }
        }
        sum += 100000u;
    }
    answer[place] = sum;
}
