// 300 x 300 rounds and 70,000 more in one invocation. A driver that ends loops early gives other words.
@group(0) @binding(0) var<storage, read_write> answer: array<u32>;
@group(0) @binding(1) var<storage> given: array<u32>;

fn step(x: u32) -> u32 { return (x * 1664525u + 1013904223u) ^ (x >> 15u); }

@compute @workgroup_size(1)
fn long_loops() {
    var x = given[2];
    for (var i = 0u; i < given[0]; i++) {
        for (var j = 0u; j < given[0]; j++) { x = step(x); }
    }
    answer[0] = x;
    for (var i = 0u; i < given[1]; i++) { x = step(x); }
    answer[1] = x;
}
