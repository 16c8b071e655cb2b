// bincount.wgsl for many elements: a cluster has a count for every bin in the shared memory of its blocks, and adds each to memory once.
// Given by the kernel that it takes over: CANTUS_ENTRY, CANTUS_PARAMETERS, element(place), add(bin, count).
// Launched with 4 << `slice` bytes of shared memory; each of a cluster's blocks has 1 << `slice` of the bins.

extern "C" __global__ void __launch_bounds__(THREADS) CANTUS_ENTRY(CANTUS_PARAMETERS, const u32 count, const u32 bins, const u32 slice) {
    CLUSTER_WINDOW(u32, window);
    const u32 own = 1u << slice;
    for (u32 at = threadIdx.x; at < own; at += THREADS) window[at] = 0u;
    cluster_barrier();
    const unsigned long long step = (unsigned long long)gridDim.x * THREADS;
    for (unsigned long long at = (unsigned long long)blockIdx.x * THREADS + threadIdx.x; at < count; at += step) {
        const u32 bin = element((u32)at);
        if (bin < bins) cluster_count(window + (bin & (own - 1u)), bin >> slice);
    }
    cluster_barrier();
    for (u32 at = threadIdx.x; at < own; at += THREADS) {
        const u32 bin = (cluster_rank() << slice) + at, counted = window[at];
        if (bin < bins && counted != 0u) add(bin, counted);
    }
}
