// Thread-block clusters (compute capability 9.0 and later), without a header of the toolkit. The blocks of a cluster run at the same time and read
// each other's shared memory. The second body is for tests, where blocks are fibers of a processor.

#ifdef CANTUS_DOUBLE
extern "C" unsigned cantus_double_cluster_rank();
extern "C" unsigned cantus_double_cluster_size();
extern "C" void cantus_double_cluster_barrier();
extern "C" void *cantus_double_window(unsigned rank);
#define cluster_rank cantus_double_cluster_rank
#define cluster_size cantus_double_cluster_size
#define cluster_barrier cantus_double_cluster_barrier
#define CLUSTER_WINDOW(type, name) type *name = (type *)cantus_double_window(cluster_rank())
[[maybe_unused]] static inline float cluster_read(const float *place, unsigned rank) {
    const float *own = (const float *)cantus_double_window(cluster_rank());
    return ((const float *)cantus_double_window(rank))[place - own];
}
[[maybe_unused]] static inline void cluster_count(const u32 *place, unsigned rank) {
    const u32 *own = (const u32 *)cantus_double_window(cluster_rank());
    ((u32 *)cantus_double_window(rank))[place - own]++;
}
#else
// This block's place in its cluster.
static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// Blocks in the cluster.
static __device__ __forceinline__ unsigned cluster_size() {
    unsigned size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}
// All threads of the cluster come here before any goes on, and what they wrote to shared memory is seen.
static __device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
// The block's shared memory, of the size that the launch asks for.
#define CLUSTER_WINDOW(type, name) \
    extern __shared__ __align__(16) unsigned char cantus_window[]; \
    type *name = (type *)cantus_window
// What another block of the cluster has at this place of its shared memory.
[[maybe_unused]] static __device__ __forceinline__ float cluster_read(const float *place, unsigned rank) {
    unsigned own = (unsigned)__cvta_generic_to_shared(place), there;
    float value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
    return value;
}
// Adds 1 to what another block of the cluster has at this place of its shared memory.
[[maybe_unused]] static __device__ __forceinline__ void cluster_count(const u32 *place, unsigned rank) {
    unsigned own = (unsigned)__cvta_generic_to_shared(place), there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(there) : "memory");
}
#endif

#define WARPS (THREADS / 32u)

[[maybe_unused]] static __device__ __forceinline__ float cluster_combined(float a, float b, bool greatest) { return greatest ? fmaxf(a, b) : a + b; }

// The sum, or the greatest, of what all threads of the cluster give. `parts` has room for WARPS + 1 numbers that nothing else uses.
[[maybe_unused]] static __device__ __forceinline__ float cluster_all(float value, bool greatest, float *parts) {
    for (int by = 16; by > 0; by /= 2) value = cluster_combined(value, __shfl_xor_sync(0xffffffffu, value, by), greatest);
    if (threadIdx.x % 32u == 0u) parts[threadIdx.x / 32u] = value;
    __syncthreads();
    float block = parts[0];
    for (unsigned warp = 1u; warp < WARPS; warp++) block = cluster_combined(block, parts[warp], greatest);
    if (threadIdx.x == 0u) parts[WARPS] = block;
    cluster_barrier();
    float all = cluster_read(parts + WARPS, 0u);
    for (unsigned rank = 1u; rank < cluster_size(); rank++) all = cluster_combined(all, cluster_read(parts + WARPS, rank), greatest);
    return all;
}
