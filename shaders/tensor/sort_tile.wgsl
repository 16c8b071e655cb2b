// What the kernels of a sort share. A workgroup has a tile of LANES * EACH elements, each a key and a place; an invocation holds EACH of them that
// follow each other. A line with a hash sign stands for EACH lines, one for each element. Given: LANES, EACH, WORDS.

// Words of eight counts lie a row apart, so that neither a count's owner nor who adds counts up meets a bank twice.
const PITCH = LANES + 4u;
const SUMS = 8u * PITCH;
const GROUPS = LANES / 16u;
const TOTALS = SUMS + LANES + GROUPS;
// Two counts of a word.
const COUNTS = 0x00ff00ffu;

// Keys, places and counts, one after the other.
var<workgroup> tile: array<u32, WORDS>;

struct Own {
    key#: u32, place#: u32,
}

// The word of an element of the tile, which keeps those of an invocation on different banks.
fn spot(place: u32) -> u32 {
    return place ^ ((place >> 5u) & 31u);
}

// The word of an invocation's counts of `digit` and the one eight above.
fn cell(digit: u32, lane: u32) -> u32 {
    return (lane % 8u) * PITCH + digit * (LANES / 8u) + lane / 8u;
}

// The word of an invocation's sum.
fn sum_of(lane: u32) -> u32 {
    return SUMS + lane + lane / 16u;
}

// An invocation's counts of sixteen digits, in bytes: digit 4 b + c in byte b of component c.
fn counted(counts: vec4u, digit: u32) -> u32 {
    let odd = (digit & 1u) != 0u;
    let word = select(select(counts.x, counts.y, odd), select(counts.z, counts.w, odd), (digit & 2u) != 0u);
    return (word >> (8u * (digit >> 2u))) & 0xffu;
}

fn one_more(counts: vec4u, digit: u32) -> vec4u {
    return counts + select(vec4u(0u), vec4u(1u << (8u * (digit >> 2u))), vec4u(0u, 1u, 2u, 3u) == vec4u(digit & 3u));
}

// The tile in the order of four bits of its keys, equal ones in theirs. With `beside`, an invocation gets elements LANES apart, so that neighbours
// store neighbours. The tile's words then have the keys.
fn split(own: Own, lane: u32, shift: u32, beside: bool) -> Own {
    var counts = vec4u(0u);
    let digit# = (own.key# >> shift) & 15u; let before# = counted(counts, digit#); counts = one_more(counts, digit#);
    workgroupBarrier();
    tile[cell(0u, lane)] = counts.x & COUNTS;
    tile[cell(1u, lane)] = counts.y & COUNTS;
    tile[cell(2u, lane)] = counts.z & COUNTS;
    tile[cell(3u, lane)] = counts.w & COUNTS;
    tile[cell(4u, lane)] = (counts.x >> 8u) & COUNTS;
    tile[cell(5u, lane)] = (counts.y >> 8u) & COUNTS;
    tile[cell(6u, lane)] = (counts.z >> 8u) & COUNTS;
    tile[cell(7u, lane)] = (counts.w >> 8u) & COUNTS;
    workgroupBarrier();
    // Eight words in a row are one invocation's to add up.
    let c0 = tile[lane];
    let c1 = tile[PITCH + lane];
    let c2 = tile[2u * PITCH + lane];
    let c3 = tile[3u * PITCH + lane];
    let c4 = tile[4u * PITCH + lane];
    let c5 = tile[5u * PITCH + lane];
    let c6 = tile[6u * PITCH + lane];
    let c7 = tile[7u * PITCH + lane];
    let together = c0 + c1 + c2 + c3 + c4 + c5 + c6 + c7;
    // Sixteen sums are one invocation's again, and few are left.
    tile[sum_of(lane)] = together;
    workgroupBarrier();
    if lane < GROUPS {
        var before = 0u;
        for (var i = 0u; i < 16u; i++) {
            let sum = tile[sum_of(16u * lane + i)];
            tile[sum_of(16u * lane + i)] = before;
            before += sum;
        }
        tile[TOTALS + lane] = before;
    }
    workgroupBarrier();
    var running = tile[sum_of(lane)];
    var all = 0u;
    for (var i = 0u; i < GROUPS; i++) {
        running += select(0u, tile[TOTALS + i], i < lane / 16u);
        all += tile[TOTALS + i];
    }
    // Digits from eight on, in the upper halves, come behind all others.
    running += all << 16u;
    tile[lane] = running;
    running += c0;
    tile[PITCH + lane] = running;
    running += c1;
    tile[2u * PITCH + lane] = running;
    running += c2;
    tile[3u * PITCH + lane] = running;
    running += c3;
    tile[4u * PITCH + lane] = running;
    running += c4;
    tile[5u * PITCH + lane] = running;
    running += c5;
    tile[6u * PITCH + lane] = running;
    running += c6;
    tile[7u * PITCH + lane] = running;
    workgroupBarrier();
    let to# = spot(((tile[cell(digit# & 7u, lane)] >> (16u * (digit# >> 3u))) & 0xffffu) + before#);
    workgroupBarrier();
    tile[to#] = own.place#;
    let first = select(EACH * lane, lane, beside);
    let step = select(1u, LANES, beside);
    workgroupBarrier();
    let place# = tile[spot(first + #u * step)];
    workgroupBarrier();
    tile[to#] = own.key#;
    workgroupBarrier();
    let key# = tile[spot(first + #u * step)];
    return Own(
        key#, place#,
    );
}
