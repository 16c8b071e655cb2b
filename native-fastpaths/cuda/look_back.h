// Blocks that wait for what earlier ones tell them, each by one word of 64 bits in memory: 0 at first, then a flag above a value of 32 bits. One
// access carries both, so nothing has to be ordered between them. The second body is for tests, where blocks are fibers of a processor.

typedef unsigned long long State;

#ifdef CANTUS_DOUBLE
extern "C" void *cantus_double_window(unsigned rank);
extern "C" void cantus_double_wait();
extern "C" void cantus_double_told();
#define BLOCK_WINDOW(type, name) type *name = (type *)cantus_double_window(0)
static inline void state_tell(State *place, State state) {
    *place = state;
    cantus_double_told();
}
static inline State state_of(const State *place) {
    cantus_double_wait();
    return *place;
}
#else
// The block's shared memory, of the size that the launch asks for.
#define BLOCK_WINDOW(type, name) \
    extern __shared__ __align__(16) unsigned char cantus_window[]; \
    type *name = (type *)cantus_window
static __device__ __forceinline__ void state_tell(State *place, State state) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(place), "l"(state) : "memory");
}
static __device__ __forceinline__ State state_of(const State *place) {
    State state;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(state) : "l"(place) : "memory");
    return state;
}
#endif

[[maybe_unused]] static __device__ __forceinline__ u32 bits_of(float value) { return __float_as_uint(value); }
[[maybe_unused]] static __device__ __forceinline__ u32 bits_of(int value) { return (u32)value; }
[[maybe_unused]] static __device__ __forceinline__ u32 bits_of(u32 value) { return value; }
[[maybe_unused]] static __device__ __forceinline__ void of_bits(u32 bits, float &value) { value = __uint_as_float(bits); }
[[maybe_unused]] static __device__ __forceinline__ void of_bits(u32 bits, int &value) { value = (int)bits; }
[[maybe_unused]] static __device__ __forceinline__ void of_bits(u32 bits, u32 &value) { value = bits; }
