// scan.wgsl for long rows in one reading, by decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled
// Look-back", 2016): a block tells the total of its tile, combines those of earlier tiles back to one that knows all before it, and tells its own.
// Given by the kernel that it takes over: CANTUS_ENTRY, CANTUS_PARAMETERS, neutral(), combine(a, b), element(row, place), store(index, value).
// Launched with TILE + WARPS + 2 words of shared memory, and with `states` of zeros: one for each tile, and a ticket behind them.
// Tiles are taken by ticket, in their order: whoever is waited for has started.

#define EACH 15u
#define TILE (EACH * THREADS)
#define WARPS (THREADS / 32u)
#define OWN 1u
#define WHOLE 2u

extern "C" __global__ void __launch_bounds__(THREADS) CANTUS_ENTRY(CANTUS_PARAMETERS, const u32 length, const u32 tiles, const u32 exclusive, State *states) {
    using Number = decltype(neutral());
    BLOCK_WINDOW(Number, values);
    Number *warps = values + TILE, *earlier = warps + WARPS;
    u32 *ticket = (u32 *)(earlier + 1);
    if (threadIdx.x == 0u) *ticket = atomicAdd((u32 *)(states + gridDim.x), 1u);
    __syncthreads();
    const u32 row = *ticket / tiles, tile = *ticket % tiles, first = tile * TILE, lane = threadIdx.x % 32u, warp = threadIdx.x / 32u;
    const u32 count = length - first < TILE ? length - first : TILE;
    for (u32 at = threadIdx.x; at < TILE; at += THREADS) values[at] = at < count ? element(row, first + at) : neutral();
    __syncthreads();

    // What is before each thread's elements in the tile, and all of the tile.
    Number *own = values + EACH * threadIdx.x, sum = own[0];
#pragma unroll
    for (u32 i = 1u; i < EACH; i++) sum = combine(sum, own[i]);
    for (u32 by = 1u; by < 32u; by *= 2u) {
        const Number other = __shfl_up_sync(0xffffffffu, sum, by);
        if (lane >= by) sum = combine(other, sum);
    }
    if (lane == 31u) warps[warp] = sum;
    __syncthreads();
    Number before = neutral(), total = warps[0];
    for (u32 at = 0u; at < warp; at++) before = combine(before, warps[at]);
    for (u32 at = 1u; at < WARPS; at++) total = combine(total, warps[at]);
    sum = __shfl_up_sync(0xffffffffu, sum, 1u);
    if (lane > 0u) before = combine(before, sum);

    // The first warp looks back, 32 tiles at a time.
    if (warp == 0u) {
        State *state = states + *ticket;
        Number all = neutral();
        if (lane == 0u && tile > 0u) state_tell(state, (State)OWN << 32 | bits_of(total));
        for (u32 last = tile, known = 0u; last > 0u && known == 0u; last -= last < 32u ? last : 32u) {
            // Lane 0 has the nearest tile. Beyond the row's first tile, which knows all before it, nothing counts.
            State told = (State)WHOLE << 32;
            do {
                if (lane < last) told = state_of(state - (tile - last) - 1u - lane);
            } while (__any_sync(0xffffffffu, told >> 32 == 0u));
            known = __ballot_sync(0xffffffffu, told >> 32 == WHOLE);
            const u32 counted = known != 0u ? (u32)__ffs((int)known) : 32u;
            Number part = neutral();
            if (lane < counted && lane < last) of_bits((u32)told, part);
            for (u32 by = 1u; by < 32u; by *= 2u) {
                const Number other = __shfl_down_sync(0xffffffffu, part, by);
                if (lane + by < 32u) part = combine(other, part);
            }
            all = combine(__shfl_sync(0xffffffffu, part, 0), all);
        }
        if (lane == 0u) {
            state_tell(state, (State)WHOLE << 32 | bits_of(combine(all, total)));
            *earlier = all;
        }
    }
    __syncthreads();

    Number running = combine(*earlier, before);
#pragma unroll
    for (u32 i = 0u; i < EACH; i++) {
        const Number with_own = combine(running, own[i]);
        own[i] = exclusive != 0u ? running : with_own;
        running = with_own;
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at < count; at += THREADS) {
        const Number value = values[at];
        store(row * length + first + at, value);
    }
}
