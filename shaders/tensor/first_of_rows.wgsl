// A workgroup finds the first KEEP elements of a row in their order, or of a part of one: words[0] = (rows, length of a row, length of a part,
// number of parts). Given: KEEP, order(row, place) -> u32, place_of(row, place) -> u32, y, in which an element has two words: its order and its
// place. Every part has as many elements.

const LANES = 64u;
const NONE = 0xffffffffu;

var<workgroup> orders: array<u32, LANES * KEEP>;
var<workgroup> places: array<u32, LANES * KEEP>;

@compute @workgroup_size(LANES)
fn first_of_rows(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let start = group.x * words[0].z;
    let end = min(start + words[0].z, words[0].y);
    // Each invocation's own, in their order.
    var best: array<u32, KEEP>;
    var at: array<u32, KEEP>;
    for (var i = 0u; i < KEEP; i++) {
        best[i] = NONE;
        at[i] = NONE;
    }
    for (var place = start + lane; place < end; place += LANES) {
        var own = order(row, place);
        if own < best[KEEP - 1u] || at[KEEP - 1u] == NONE {
            var own_place = place_of(row, place);
            for (var i = 0u; i < KEEP; i++) {
                // Of equal ones the first stays first.
                let before = own < best[i] || (own == best[i] && own_place < at[i]);
                let other = best[i];
                let other_place = at[i];
                best[i] = select(other, own, before);
                at[i] = select(other_place, own_place, before);
                own = select(own, other, before);
                own_place = select(own_place, other_place, before);
            }
        }
    }
    for (var i = 0u; i < KEEP; i++) {
        orders[lane * KEEP + i] = best[i];
        places[lane * KEEP + i] = at[i];
    }
    workgroupBarrier();
    // Two by two.
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        if lane < stride {
            var first = lane * KEEP;
            var second = (lane + stride) * KEEP;
            for (var i = 0u; i < KEEP; i++) {
                let is_first = orders[first] < orders[second]
                    || (orders[first] == orders[second] && places[first] <= places[second]);
                let chosen = select(second, first, is_first);
                best[i] = orders[chosen];
                at[i] = places[chosen];
                first += u32(is_first);
                second += u32(!is_first);
            }
            for (var i = 0u; i < KEEP; i++) {
                orders[lane * KEEP + i] = best[i];
                places[lane * KEEP + i] = at[i];
            }
        }
        workgroupBarrier();
    }
    for (var i = lane; i < KEEP; i += LANES) {
        let to = 2u * ((row * words[0].w + group.x) * KEEP + i);
        y[to] = orders[i];
        y[to + 1u] = places[i];
    }
}
