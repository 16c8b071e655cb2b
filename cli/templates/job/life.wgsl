// Conway's Game of Life on a torus. A cell lives where the lowest bit is set, so that random numbers are a start.
override WIDTH = 256u;
override HEIGHT = 256u;

@group(0) @binding(0) var<storage, read> cells: array<u32>;
@group(0) @binding(1) var<storage, read_write> after: array<u32>;

fn alive(x: u32, y: u32) -> u32 {
    return cells[(y % HEIGHT) * WIDTH + x % WIDTH] & 1u;
}

@compute @workgroup_size(16, 16)
fn life(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= WIDTH || id.y >= HEIGHT { return; }
    let x = id.x + WIDTH;
    let y = id.y + HEIGHT;
    var neighbours = 0u;
    for (var row = y - 1u; row <= y + 1u; row++) {
        neighbours += alive(x - 1u, row) + alive(x, row) + alive(x + 1u, row);
    }
    neighbours -= alive(x, y);
    after[id.y * WIDTH + id.x] = select(0u, 1u, neighbours == 3u || (neighbours == 2u && alive(x, y) == 1u));
}
