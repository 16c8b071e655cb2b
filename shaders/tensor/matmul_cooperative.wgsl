// A tile of 64 x 64 of a matrix product of f16 by each workgroup, with sums in f32, by the small matrices that a subgroup multiplies as one. words[0] =
// (rows, columns, depth of the product). Given: load_a(batch, row, k) -> f32 and load_b(batch, k, column) -> f32, whose values are exact in f16, and
// store(batch, row, column, value).

const LANES = 128u;
const TILE = 64u;
// Steps of the depth that are in workgroup memory at a time.
const DEPTH = 32u;
// Rows lie further apart than they are long: lanes read from different banks.
const A_STRIDE = DEPTH + 8u;
const B_STRIDE = TILE + 8u;
// Neighbouring invocations read along k of a, and along the columns of b, where these are true.
const A_ALONG_K = true;
const B_ALONG_COLUMNS = true;

var<workgroup> tile_a: array<f16, TILE * A_STRIDE>;
var<workgroup> tile_b: array<f16, DEPTH * B_STRIDE>;
// A matrix of sums of each quarter of the tile.
var<workgroup> sums: array<f32, 1024>;
var<workgroup> turns: u32;

fn element_a(batch: u32, row: u32, k: u32) -> f16 {
    if row < words[0].x && k < words[0].z { return f16(load_a(batch, row, k)); }
    return 0.0h;
}

fn element_b(batch: u32, k: u32, column: u32) -> f16 {
    if column < words[0].y && k < words[0].z { return f16(load_b(batch, k, column)); }
    return 0.0h;
}

// Where a workgroup's tile begins, and which quarters its subgroups have in this turn.
struct Place { batch: u32, row: u32, column: u32, lane: u32, subgroups: u32, turn: u32, own: u32 }

// Stores the part of each quarter that begins at (down, across).
fn store_part(place: Place, down: u32, across: u32, sum: coop_mat16x16<f32, C>) {
    if place.own < 4u { coopStoreT(sum, &sums[place.own * 256u], 16u); }
    workgroupBarrier();
    for (var i = place.lane; i < 1024u; i += LANES) {
        let quarter = i / 256u;
        let row = place.row + quarter / 2u * 32u + down + i % 256u / 16u;
        let column = place.column + quarter % 2u * 32u + across + i % 16u;
        if quarter / place.subgroups == place.turn && row < words[0].x && column < words[0].y {
            store(place.batch, row, column, sums[i]);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn matmul_cooperative(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
) {
    let batch = group.z;
    let row = group.y * TILE;
    let column = group.x * TILE;
    // Each subgroup takes a quarter of the tile at a time; with fewer than four subgroups, more turns.
    if lane == 0u { turns = (3u + subgroups) / subgroups; }
    let rounds = workgroupUniformLoad(&turns);
    for (var turn = 0u; turn < rounds; turn++) {
        let own = turn * subgroups + subgroup;
        let down = min(own, 3u) / 2u * 32u;
        let across = min(own, 3u) % 2u * 32u;
        var sum00 = coop_mat16x16<f32, C>();
        var sum01 = coop_mat16x16<f32, C>();
        var sum10 = coop_mat16x16<f32, C>();
        var sum11 = coop_mat16x16<f32, C>();
        for (var base = 0u; base < words[0].z; base += DEPTH) {
            // In one loop, which compilers unroll less far than two: registers are left for the sums.
            for (var i = lane; i < TILE * DEPTH; i += LANES) {
                let r = select(i % TILE, i / DEPTH, A_ALONG_K);
                let of_a = select(i / TILE, i % DEPTH, A_ALONG_K);
                tile_a[r * A_STRIDE + of_a] = element_a(batch, row + r, base + of_a);
                let of_b = select(i % DEPTH, i / TILE, B_ALONG_COLUMNS);
                let c = select(i / DEPTH, i % TILE, B_ALONG_COLUMNS);
                tile_b[of_b * B_STRIDE + c] = element_b(batch, base + of_b, column + c);
            }
            workgroupBarrier();
            for (var d = 0u; d < DEPTH; d += 16u) {
                let a0 = coopLoadT<coop_mat16x16<f16, A>>(&tile_a[down * A_STRIDE + d], A_STRIDE);
                let a1 = coopLoadT<coop_mat16x16<f16, A>>(&tile_a[(down + 16u) * A_STRIDE + d], A_STRIDE);
                let b0 = coopLoadT<coop_mat16x16<f16, B>>(&tile_b[d * B_STRIDE + across], B_STRIDE);
                let b1 = coopLoadT<coop_mat16x16<f16, B>>(&tile_b[d * B_STRIDE + across + 16u], B_STRIDE);
                sum00 = coopMultiplyAdd(a0, b0, sum00);
                sum01 = coopMultiplyAdd(a0, b1, sum01);
                sum10 = coopMultiplyAdd(a1, b0, sum10);
                sum11 = coopMultiplyAdd(a1, b1, sum11);
            }
            workgroupBarrier();
        }
        let place = Place(batch, row, column, lane, subgroups, turn, own);
        store_part(place, 0u, 0u, sum00);
        store_part(place, 0u, 16u, sum01);
        store_part(place, 16u, 0u, sum10);
        store_part(place, 16u, 16u, sum11);
    }
}
