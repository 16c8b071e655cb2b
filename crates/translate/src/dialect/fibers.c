// Invocations that wait for each other: fibers on one thread.
#include <ucontext.h>
#if defined(__SANITIZE_ADDRESS__)
void __sanitizer_start_switch_fiber(void **save, const void *bottom, __SIZE_TYPE__ size);
void __sanitizer_finish_switch_fiber(void *save, const void **bottom, __SIZE_TYPE__ *size);
#define CANTUS_LEAVE(save, bottom, size) __sanitizer_start_switch_fiber(save, bottom, size)
#define CANTUS_ARRIVE(save, bottom, size) __sanitizer_finish_switch_fiber(save, bottom, size)
#else
#define CANTUS_LEAVE(save, bottom, size) ((void)(bottom), (void)(size))
#define CANTUS_ARRIVE(save, bottom, size) ((void)(save))
#endif
#define CANTUS_STACK 262144u
enum { CANTUS_RUNS, CANTUS_WAITS, CANTUS_MEETS, CANTUS_DONE };
typedef void cantus_body(const void *data, const u32 local[3]);
typedef struct {
    ucontext_t context;
    void *saved; // the sanitizer's
    u32 local[3];
    u32 index;
    u32 state;
    u32 site; // of the subgroup operation that it waits in
    const void *value;
    void *values;
    u32 bytes;
    u32 lanes;
} cantus_fiber;
static _Thread_local cantus_fiber *cantus_self;
static _Thread_local ucontext_t cantus_scheduler;
static _Thread_local const void *cantus_bottom;
static _Thread_local __SIZE_TYPE__ cantus_size;
static _Thread_local cantus_body *cantus_function;
static _Thread_local const void *cantus_argument;
typedef u32 cantus_lanes;

static inline void cantus_yield(u32 state) {
    cantus_fiber *self = cantus_self;
    self->state = state;
    CANTUS_LEAVE(state == CANTUS_DONE ? (void **)0 : &self->saved, cantus_bottom, cantus_size);
    swapcontext(&self->context, &cantus_scheduler);
    CANTUS_ARRIVE(self->saved, &cantus_bottom, &cantus_size);
}

// Waits for the whole workgroup.
static inline void cantus_wait(void) {
    cantus_yield(CANTUS_WAITS);
}

// Waits for the lanes of the subgroup that come to the same place, and gives their values.
static inline cantus_lanes cantus_meet(u32 site, const void *value, void *values, u32 bytes) {
    cantus_fiber *self = cantus_self;
    self->site = site;
    self->value = value;
    self->values = values;
    self->bytes = bytes;
    cantus_yield(CANTUS_MEETS);
    return self->lanes;
}

static inline u32 cantus_lane(void) {
    return cantus_self->index % 32u;
}

static void cantus_start(void) {
    CANTUS_ARRIVE((void *)0, &cantus_bottom, &cantus_size);
    cantus_function(cantus_argument, cantus_self->local);
    cantus_yield(CANTUS_DONE);
}

static void cantus_prepare(cantus_fiber *fiber, void *stack) {
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = CANTUS_STACK;
    fiber->context.uc_link = (void *)0;
    makecontext(&fiber->context, cantus_start, 0);
}

// Lets those of a subgroup go on that wait at the first place of all. They have arrived: nobody else of them runs.
static bool cantus_release(cantus_fiber *lane, u32 count) {
    u32 site = ~0u;
    for (u32 i = 0u; i < count; i++) {
        site = lane[i].state == CANTUS_MEETS && lane[i].site < site ? lane[i].site : site;
    }
    u32 lanes = 0u;
    for (u32 i = 0u; i < count; i++) {
        lanes |= lane[i].state == CANTUS_MEETS && lane[i].site == site ? 1u << i : 0u;
    }
    for (u32 i = 0u; i < count; i++) {
        if ((lanes >> i & 1u) == 0u) {
            continue;
        }
        for (u32 j = 0u; j < 32u && lane[i].bytes != 0u; j++) {
            // What comes from a lane that is not there is one's own value.
            const u32 from = (lanes >> j & 1u) != 0u ? j : i;
            __builtin_memcpy((u8 *)lane[i].values + j * lane[i].bytes, lane[from].value, lane[i].bytes);
        }
        lane[i].lanes = lanes;
    }
    for (u32 i = 0u; i < count; i++) {
        lane[i].state = (lanes >> i & 1u) != 0u ? CANTUS_RUNS : lane[i].state;
    }
    return lanes != 0u;
}

// Runs a workgroup's invocations until all are done.
static void cantus_run(cantus_body *body, const void *data, u32 x, u32 y, u32 z) {
    const u32 count = x * y * z;
    cantus_fiber *fibers = __builtin_calloc(count, sizeof(cantus_fiber));
    u8 *stacks = __builtin_malloc((__SIZE_TYPE__)count * CANTUS_STACK);
    if (fibers == (void *)0 || stacks == (void *)0) {
        __builtin_trap();
    }
    cantus_function = body;
    cantus_argument = data;
    for (u32 i = 0u; i < count; i++) {
        fibers[i].index = i;
        fibers[i].local[0] = i % x;
        fibers[i].local[1] = i / x % y;
        fibers[i].local[2] = i / (x * y);
        cantus_prepare(&fibers[i], stacks + (__SIZE_TYPE__)i * CANTUS_STACK);
    }
    bool done = false;
    while (!done) {
        for (u32 i = 0u; i < count; i++) {
            if (fibers[i].state == CANTUS_RUNS) {
                void *saved = (void *)0;
                cantus_self = &fibers[i];
                CANTUS_LEAVE(&saved, stacks + (__SIZE_TYPE__)i * CANTUS_STACK, CANTUS_STACK);
                swapcontext(&cantus_scheduler, &fibers[i].context);
                CANTUS_ARRIVE(saved, (const void **)0, (__SIZE_TYPE__ *)0);
            }
        }
        bool released = false;
        for (u32 i = 0u; i < count; i += 32u) {
            released |= cantus_release(fibers + i, count - i < 32u ? count - i : 32u);
        }
        done = !released;
        for (u32 i = 0u; i < count && !released; i++) {
            if (fibers[i].state == CANTUS_WAITS) {
                fibers[i].state = CANTUS_RUNS;
                done = false;
            }
        }
    }
    __builtin_free(stacks);
    __builtin_free(fibers);
}
