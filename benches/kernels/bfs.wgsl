// A step of a search in breadth: neighbours of the nodes of this level come into the next one. Rows of edges, compressed.

struct Params { count: u32, level: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<u32>;
@group(0) @binding(2) var<storage, read> edges: array<u32>;
@group(0) @binding(3) var<storage, read_write> levels: array<atomic<u32>>;

@compute @workgroup_size(128)
fn bfs(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= params.count { return; }
    if atomicLoad(&levels[id.x]) != params.level { return; }
    for (var at = rows[id.x]; at < rows[id.x + 1u]; at++) {
        atomicMin(&levels[edges[at]], params.level + 1u);
    }
}
