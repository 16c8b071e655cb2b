// The GPU's language on the processor, as far as Cantus's translations use it. See double.cpp.
#pragma once
#define CANTUS_DOUBLE

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <tuple>
#include <utility>

struct cantus_double_dim { unsigned x, y, z; };
struct cantus_double_place { cantus_double_dim thread, block, block_size, grid; unsigned number; };
extern "C" const cantus_double_place *cantus_double_here();
extern "C" void cantus_double_barrier();
extern "C" uint64_t cantus_double_alive();
extern "C" uint64_t cantus_double_exchange(uint64_t mask, const void *value, unsigned bytes, char (*all)[16]);

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static
// Blocks without a window run one after the other: what they share is a static variable, with noise in it at the start of a kernel.
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

#define threadIdx (cantus_double_here()->thread)
#define blockIdx (cantus_double_here()->block)
#define blockDim (cantus_double_here()->block_size)
#define gridDim (cantus_double_here()->grid)
#define warpSize 32

static inline void __syncthreads() { cantus_double_barrier(); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    char all[64][16];
    int nothing = 0;
    cantus_double_exchange(mask, &nothing, 4, all);
}

namespace cantus_double {
template <class T> struct Lanes {
    char all[64][16];
    uint64_t gave;
    Lanes(uint64_t mask, T value) { gave = cantus_double_exchange(mask, &value, sizeof(T), all); }
    bool has(unsigned lane) const { return lane < 32 && (gave >> lane & 1); }
    T of(unsigned lane) const {
        T value;
        memcpy(&value, all[lane & 31], sizeof(T));
        return value;
    }
};
static inline unsigned lane() { return cantus_double_here()->number % 32; }

template <class F> struct Closure;
template <class... A> struct Closure<void (*)(A...)> {
    using Values = std::tuple<std::decay_t<A>...>;
    template <size_t... I> static void *capture(void **p, std::index_sequence<I...>) {
        return new Values(*(std::decay_t<A> *)p[I]...);
    }
    template <size_t... I> static void call(void (*f)(A...), Values &v, std::index_sequence<I...>) { f(std::get<I>(v)...); }
};
}  // namespace cantus_double

template <class T> static T __shfl_sync(unsigned mask, T value, int from, int = 32) { return cantus_double::Lanes<T>(mask, value).of(unsigned(from)); }
template <class T> static T __shfl_up_sync(unsigned mask, T value, unsigned by, int = 32) {
    unsigned lane = cantus_double::lane();
    cantus_double::Lanes<T> lanes(mask, value);
    return lane >= by ? lanes.of(lane - by) : value;
}
template <class T> static T __shfl_down_sync(unsigned mask, T value, unsigned by, int = 32) {
    unsigned lane = cantus_double::lane();
    cantus_double::Lanes<T> lanes(mask, value);
    return lane + by < 32 ? lanes.of(lane + by) : value;
}
template <class T> static T __shfl_xor_sync(unsigned mask, T value, int by, int = 32) {
    return cantus_double::Lanes<T>(mask, value).of(cantus_double::lane() ^ unsigned(by));
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    cantus_double::Lanes<int> lanes(mask, predicate);
    unsigned result = 0;
    for (unsigned i = 0; i < 32; i++) if (lanes.has(i) && lanes.of(i)) result |= 1u << i;
    return result;
}
static inline int __all_sync(unsigned mask, int predicate) {
    cantus_double::Lanes<int> lanes(mask, predicate);
    for (unsigned i = 0; i < 32; i++) if (lanes.has(i) && !lanes.of(i)) return 0;
    return 1;
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
// Fibers do not know who took the other branch: right where all lanes that live are here.
static inline unsigned __activemask() { return unsigned(cantus_double_alive()); }
#ifdef CANTUS_DOUBLE_HIP
template <class T> static T __shfl(T value, int from, int = 32) { return __shfl_sync(~0u, value, from); }
template <class T> static T __shfl_xor(T value, int by, int = 32) { return __shfl_xor_sync(~0u, value, by); }
template <class T> static T __shfl_up(T value, unsigned by, int = 32) { return __shfl_up_sync(~0u, value, by); }
template <class T> static T __shfl_down(T value, unsigned by, int = 32) { return __shfl_down_sync(~0u, value, by); }
static inline unsigned __lane_id() { return cantus_double::lane(); }
#define __builtin_amdgcn_fence(...) ((void)0)
static inline void __builtin_amdgcn_wave_barrier() { __syncwarp(); }
static inline unsigned long long __ballot(int predicate) { return __ballot_sync(~0u, predicate); }
#endif

// Fibers change at barriers, and where they wait for a word of another block: plain operations are atomic.
template <class T> static T cantus_double_swap(T *place, T value) { T old = *place; *place = value; return old; }
template <class T, class U> static T atomicAdd(T *place, U value) { return cantus_double_swap(place, T(*place + T(value))); }
template <class T, class U> static T atomicSub(T *place, U value) { return cantus_double_swap(place, T(*place - T(value))); }
template <class T, class U> static T atomicMax(T *place, U value) { return cantus_double_swap(place, *place > T(value) ? *place : T(value)); }
template <class T, class U> static T atomicMin(T *place, U value) { return cantus_double_swap(place, *place < T(value) ? *place : T(value)); }
template <class T, class U> static T atomicAnd(T *place, U value) { return cantus_double_swap(place, T(*place & T(value))); }
template <class T, class U> static T atomicOr(T *place, U value) { return cantus_double_swap(place, T(*place | T(value))); }
template <class T, class U> static T atomicXor(T *place, U value) { return cantus_double_swap(place, T(*place ^ T(value))); }
template <class T, class U> static T atomicExch(T *place, U value) { return cantus_double_swap(place, T(value)); }
template <class T, class U, class V> static T atomicCAS(T *place, U expected, V value) {
    T old = *place;
    if (old == T(expected)) *place = T(value);
    return old;
}

#ifdef CANTUS_DOUBLE_HIP
#define __HIP_MEMORY_SCOPE_AGENT 0
#define __HIP_MEMORY_SCOPE_WORKGROUP 0
#define __hip_atomic_load(place, order, scope) (*(place))
#define __hip_atomic_store(place, value, order, scope) ((void)(*(place) = (value)))
#define __hip_atomic_fetch_add(place, value, order, scope) atomicAdd(place, value)
#define __hip_atomic_fetch_and(place, value, order, scope) atomicAnd(place, value)
#define __hip_atomic_fetch_or(place, value, order, scope) atomicOr(place, value)
#define __hip_atomic_fetch_xor(place, value, order, scope) atomicXor(place, value)
#define __hip_atomic_fetch_min(place, value, order, scope) atomicMin(place, value)
#define __hip_atomic_fetch_max(place, value, order, scope) atomicMax(place, value)
#define __hip_atomic_exchange(place, value, order, scope) atomicExch(place, value)
template <class T> static bool cantus_double_exchange_if(T *place, T *compare, T value) {
    T old = *place;
    bool same = old == *compare;
    if (same) *place = value;
    *compare = old;
    return same;
}
#define __hip_atomic_compare_exchange_strong(place, compare, value, order, otherwise, scope) cantus_double_exchange_if(place, compare, value)
#endif

// The few instructions of inline PTX.
template <class To, class From> static inline To cantus_double_as(From from) { To to; memcpy(&to, &from, sizeof to); return to; }
template <class R, class... A> static inline void ptx(const char *text, R &result, A... given) {
    const char *names[] = {"mov.u32 %0, %%laneid;", "cvt.f32.f16 %0, %1;", "cvt.rn.f16.f32 %0, %1;", "add.rn.f16 %0, %1, %2;", "sub.rn.f16 %0, %1, %2;", "mul.rn.f16 %0, %1, %2;"};
    int which = 0;
    while (which < 6 && strcmp(names[which], text)) which++;
    auto half = [](auto value) { return sizeof value == 2 ? float(cantus_double_as<_Float16>(uint16_t(value))) : 0.0f; };
    if constexpr (sizeof...(A) == 0) result = R(cantus_double::lane());
    else {
        auto values = std::make_tuple(given...);
        if constexpr (sizeof...(A) == 1) {
            auto a = std::get<0>(values);
            if constexpr (sizeof(R) == 4) result = R(half(a));
            else result = R(cantus_double_as<uint16_t>(_Float16(a)));
        } else {
            float a = half(std::get<0>(values)), b = half(std::get<1>(values));
            float exact = which == 3 ? a + b : which == 4 ? a - b : a * b;
            result = R(cantus_double_as<uint16_t>(_Float16(exact)));
        }
    }
    if (which == 6) __builtin_trap();
}

// Tensor cores, element by element: the PTX ISA says which lane holds which element of a matrix.
#ifdef CANTUS_DOUBLE_CUDA
#define __CUDA_ARCH__ 900
namespace cantus_double {
struct Registers { unsigned r[4]; };
static inline float half_of(unsigned pair, unsigned high) { return float(cantus_double_as<_Float16>(uint16_t(pair >> 16 * high))); }
static inline unsigned pair_of(float low, float high) {
    return unsigned(cantus_double_as<uint16_t>(_Float16(low))) | unsigned(cantus_double_as<uint16_t>(_Float16(high))) << 16;
}
// mma.m16n8k8 and mma.m16n8k16 of f16: sixteen rows of a, eight columns of b.
static inline void mma(unsigned depth, Registers a, Registers b, float (&z)[4]) {
    Lanes<Registers> as(~0u, a), bs(~0u, b);
    for (unsigned i = 0; i < 4; i++) {
        unsigned row = lane() / 4 + (i < 2 ? 0 : 8), column = lane() % 4 * 2 + i % 2;
        for (unsigned k = 0; k < depth; k++) {
            unsigned of_a = as.of(row % 8 * 4 + k % 8 / 2).r[row / 8 + k / 8 * 2], of_b = bs.of(column * 4 + k % 8 / 2).r[k / 8];
            z[i] += half_of(of_a, k % 2) * half_of(of_b, k % 2);
        }
    }
}
static inline unsigned depth_of(const char *text) {
    if (!strncmp(text, "mma.sync.aligned.m16n8k16.row.col.", 34)) return 16;
    if (!strncmp(text, "mma.sync.aligned.m16n8k8.row.col.", 33)) return 8;
    __builtin_trap();
}
static inline void mma_halves(const char *text, unsigned &z0, unsigned &z1, Registers a, Registers b) {
    float z[4] = {half_of(z0, 0), half_of(z0, 1), half_of(z1, 0), half_of(z1, 1)};
    mma(depth_of(text), a, b, z);
    z0 = pair_of(z[0], z[1]);
    z1 = pair_of(z[2], z[3]);
}
// ldmatrix: eight lanes say where the rows of a matrix of 8 x 8 lie, on 16 bytes.
static inline unsigned row_of(const char *text, unsigned matrix, Lanes<const unsigned short *> &rows) {
    unsigned r = 0;
    for (unsigned i = 0; i < 2; i++) {
        unsigned row = lane() / 4, column = lane() % 4 * 2 + i;
        if (strstr(text, ".trans")) std::swap(row, column);
        const unsigned short *at = rows.of(matrix * 8 + row);
        if (uintptr_t(at) % 16) __builtin_trap();
        r |= unsigned(at[column]) << 16 * i;
    }
    return r;
}
}  // namespace cantus_double
static inline void ptx(const char *text, unsigned &r0, unsigned &r1, unsigned &r2, unsigned &r3, const unsigned short *row) {
    if (!strstr(text, "ldmatrix.sync.aligned.m8n8.x4.")) __builtin_trap();
    cantus_double::Lanes<const unsigned short *> rows(~0u, row);
    unsigned matrix = 0;
    for (unsigned *r : {&r0, &r1, &r2, &r3}) *r = cantus_double::row_of(text, matrix++, rows);
}
static inline void ptx(const char *text, unsigned &r0, const unsigned short *row) {
    if (!strstr(text, "ldmatrix.sync.aligned.m8n8.x1.")) __builtin_trap();
    cantus_double::Lanes<const unsigned short *> rows(~0u, row);
    r0 = cantus_double::row_of(text, 0, rows);
}
static inline void ptx(const char *text, float &z0, float &z1, float &z2, float &z3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    float z[4] = {z0, z1, z2, z3};
    cantus_double::mma(cantus_double::depth_of(text), {{a0, a1, a2, a3}}, {{b0, b1}}, z);
    z0 = z[0], z1 = z[1], z2 = z[2], z3 = z[3];
}
static inline void ptx(const char *text, float &z0, float &z1, float &z2, float &z3, unsigned a0, unsigned a1, unsigned b0) {
    float z[4] = {z0, z1, z2, z3};
    cantus_double::mma(cantus_double::depth_of(text), {{a0, a1}}, {{b0}}, z);
    z0 = z[0], z1 = z[1], z2 = z[2], z3 = z[3];
}
static inline void ptx(const char *text, unsigned &z0, unsigned &z1, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    cantus_double::mma_halves(text, z0, z1, {{a0, a1, a2, a3}}, {{b0, b1}});
}
static inline void ptx(const char *text, unsigned &z0, unsigned &z1, unsigned a0, unsigned a1, unsigned b0) {
    cantus_double::mma_halves(text, z0, z1, {{a0, a1}}, {{b0}});
}
#endif

template <class To, class From> static inline To cantus_double_bits(From from) { To to; memcpy(&to, &from, sizeof to); return to; }
static inline float __int_as_float(int x) { return cantus_double_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return cantus_double_bits<float>(x); }
static inline int __float_as_int(float x) { return cantus_double_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return cantus_double_bits<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return cantus_double_bits<double>(x); }
static inline long long __double_as_longlong(double x) { return cantus_double_bits<long long>(x); }
static inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned result = 0;
    for (int i = 0; i < 32; i++) result |= (x >> i & 1) << (31 - i);
    return result;
}
static inline unsigned long long __brevll(unsigned long long x) {
    unsigned long long result = 0;
    for (int i = 0; i < 64; i++) result |= (x >> i & 1) << (63 - i);
    return result;
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }

#define CANTUS_DOUBLE_ENTRY(entry) \
    using cantus_double_closure = cantus_double::Closure<decltype(&entry)>; \
    template <class F> struct cantus_double_count; \
    template <class... A> struct cantus_double_count<void (*)(A...)> { using type = std::index_sequence_for<A...>; }; \
    using cantus_double_indices = cantus_double_count<decltype(&entry)>::type; \
    extern "C" __attribute__((visibility("default"))) void *cantus_double_capture(void **p) { return cantus_double_closure::capture(p, cantus_double_indices()); } \
    extern "C" __attribute__((visibility("default"))) void cantus_double_run(void *c) { cantus_double_closure::call(&entry, *(cantus_double_closure::Values *)c, cantus_double_indices()); } \
    extern "C" __attribute__((visibility("default"))) void cantus_double_drop(void *c) { delete (cantus_double_closure::Values *)c; }
