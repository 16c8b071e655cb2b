// coherence_whole.wgsl for a field that one cluster holds in the shared memory of its blocks, so that it is read once.
// Given by the kernel that it takes over: CANTUS_ENTRY, CANTUS_PARAMETERS, element(place), store(index, value).
// Launched as one cluster with a slice of the field and 2 (WARPS + 1) floats of shared memory for each block.

extern "C" __global__ void __launch_bounds__(THREADS) CANTUS_ENTRY(CANTUS_PARAMETERS, const u32 size, const u32 width, const u32 bits) {
    CLUSTER_WINDOW(float, window);
    const u32 slice = ((size + cluster_size() - 1u) / cluster_size() + 3u) / 4u * 4u, start = cluster_rank() * slice;
    const u32 count = start < size ? (size - start < slice ? size - start : slice) : 0u;
    // Two sets of parts, by turns: between two uses of one all blocks meet.
    float *even = window + slice, *odd = even + WARPS + 1u;
    const float factor = __uint_as_float(bits), first = element(0u), infinity = __uint_as_float(0x7f800000u);
    float sum = 0.0f, largest = 0.0f;
#pragma unroll 4
    for (u32 at = threadIdx.x; at < count; at += THREADS) {
        const float value = element(start + at);
        window[at] = value;
        // fmaxf would drop NaN.
        const u32 magnitude = __float_as_uint(value) & 0x7fffffffu;
        largest = fmaxf(largest, magnitude < 0x7f800000u ? __uint_as_float(magnitude) : infinity);
        sum += (value - first) * factor;
    }
    largest = cluster_all(largest, true, even);
    // What float32 cannot hold of the mean goes into the shift.
    const float high = first + cluster_all(sum, false, odd) / (float)size / factor;
    sum = 0.0f;
    for (u32 at = threadIdx.x; at < count; at += THREADS) sum += window[at] = (window[at] - high) * factor;
    const float shift = cluster_all(sum, false, even) / (float)size;
    float squares = 0.0f;
    for (u32 at = threadIdx.x; at < count; at += THREADS) {
        const float distance = window[at] -= shift;
        squares += distance * distance;
    }
    squares = cluster_all(squares, false, odd);
    // All distances are there: what is before the slice is in the memory of other blocks.
    sum = 0.0f;
    for (u32 at = threadIdx.x; at < count; at += THREADS) {
        const u32 place = start + at;
        if (place < width || place % width == 0u) continue;
        const u32 over = place - width, rank = over / slice;
        const float above = at >= width ? window[at - width] : cluster_read(window + over % slice, rank);
        const float left = at > 0u ? window[at - 1u] : cluster_read(window + slice - 1u, cluster_rank() - 1u);
        sum += fabsf(window[at] * (above + left));
    }
    sum = cluster_all(sum, false, even);
    if (cluster_rank() == 0u && threadIdx.x == 0u) {
        store(0u, high + shift / factor);
        store(1u, squares);
        store(2u, largest < infinity ? largest : -1.0f);
        store(3u, sum);
    }
    // Nobody leaves while another block may read its sums.
    cluster_barrier();
}
