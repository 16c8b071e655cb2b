// rms_norm.wgsl for long rows: a cluster holds a row in the shared memory of its blocks and reads it once.
// Given by the kernel that it takes over: CANTUS_ENTRY, CANTUS_PARAMETERS, element(row, place), store(row, place, value).
// The parameters are named words, x0, x1, … and y. Launched with `slice` + 2 (WARPS + 1) floats of shared memory; a cluster's blocks have a slice of the row each.

extern "C" __global__ void __launch_bounds__(THREADS) CANTUS_ENTRY(CANTUS_PARAMETERS, const u32 length, const u32 slice, const u32 eps) {
    CLUSTER_WINDOW(float, window);
    float *parts = window + slice;
    const u32 row = blockIdx.x / cluster_size(), first = cluster_rank() * slice;
    const u32 count = first < length ? (length - first < slice ? length - first : slice) : 0u;
    float squares = 0.0f;
#pragma unroll 4
    for (u32 at = threadIdx.x; at < count; at += THREADS) {
        const float value = element(row, first + at);
        window[at] = value;
        squares += value * value;
    }
    squares = cluster_all(squares, false, parts);
    const float factor = 1.0f / sqrtf(squares / (float)length + __uint_as_float(eps));
#pragma unroll 4
    for (u32 at = threadIdx.x; at < count; at += THREADS) {
        const float result = window[at] * factor;
        store(row, first + at, result);
    }
    // Nobody leaves while another block may read its sums.
    cluster_barrier();
}
