// Blocks of threads on the processor: each thread of a block is a fiber, and fibers change at barriers only.
#pragma once

#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct cantus_double_dim { unsigned x, y, z; };
struct cantus_double_place { cantus_double_dim thread, block, block_size, grid; unsigned number; };

namespace emulation {

struct Warp {
    uint64_t arrived = 0, left = 0;
    bool giving = false;
    char values[64][16];
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    cantus_double_place place;
    bool done = false;
};

constexpr size_t STACK = 256 << 10;
constexpr unsigned WARP = 32;

static std::vector<std::unique_ptr<Fiber>> fibers;
static std::vector<Warp> warps;
static ucontext_t scheduler;
static Fiber *running;
static unsigned alive, arrived;
static uint64_t generation;
static bool moved;
static const std::function<void()> *kernel;

static void change() {
    Fiber *self = running;
    swapcontext(&self->context, &scheduler);
}

static void open_barrier_if_full() {
    if (alive && arrived == alive) {
        arrived = 0;
        generation++;
        moved = true;
    }
}

static void body() {
    (*kernel)();
    running->done = true;
    alive--;
    moved = true;
    open_barrier_if_full();
    swapcontext(&running->context, &scheduler);
}

static uint64_t alive_in(unsigned warp) {
    uint64_t mask = 0;
    for (unsigned lane = 0; lane < WARP && warp * WARP + lane < fibers.size(); lane++)
        if (fibers[warp * WARP + lane] && !fibers[warp * WARP + lane]->done) mask |= 1ull << lane;
    return mask;
}

}  // namespace emulation

extern "C" __attribute__((visibility("default"))) const cantus_double_place *cantus_double_here() { return &emulation::running->place; }

extern "C" __attribute__((visibility("default"))) void cantus_double_barrier() {
    using namespace emulation;
    uint64_t mine = generation;
    arrived++;
    moved = true;
    open_barrier_if_full();
    while (generation == mine) change();
}

// Every lane of the mask gives a value; each gets those of all. The result has a bit for every lane that gave one.
extern "C" __attribute__((visibility("default"))) uint64_t cantus_double_exchange(uint64_t mask, const void *value, unsigned bytes, char (*all)[16]) {
    using namespace emulation;
    unsigned number = running->place.number, lane = number % WARP;
    Warp &warp = warps[number / WARP];
    while (warp.giving) change();
    memcpy(warp.values[lane], value, bytes);
    warp.arrived |= 1ull << lane;
    moved = true;
    for (;;) {
        uint64_t wanted = mask & alive_in(number / WARP);
        if (warp.giving || (warp.arrived & wanted) == wanted) break;
        change();
    }
    warp.giving = true;
    uint64_t gave = warp.arrived;
    memcpy(all, warp.values, sizeof warp.values);
    warp.left |= 1ull << lane;
    moved = true;
    if (warp.left == warp.arrived) {
        warp.left = warp.arrived = 0;
        warp.giving = false;
    }
    return gave;
}

extern "C" __attribute__((visibility("default"))) uint64_t cantus_double_alive() { return emulation::alive_in(emulation::running->place.number / emulation::WARP); }

static void misuse(const std::string &what);

static void cantus_double_grid(cantus_double_dim grid, cantus_double_dim block, const std::function<void()> &work) {
    using namespace emulation;
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> guard(one_at_a_time);
    unsigned threads = block.x * block.y * block.z;
    kernel = &work;
    while (fibers.size() > threads) fibers.pop_back();
    while (fibers.size() < threads) {
        fibers.push_back(std::make_unique<Fiber>());
        fibers.back()->stack.reset(new char[STACK]);
    }
    for (unsigned z = 0; z < grid.z; z++) for (unsigned y = 0; y < grid.y; y++) for (unsigned x = 0; x < grid.x; x++) {
        warps.assign((threads + WARP - 1) / WARP, Warp());
        alive = threads;
        arrived = 0;
        for (unsigned i = 0; i < threads; i++) {
            Fiber &fiber = *fibers[i];
            fiber.done = false;
            fiber.place = {{i % block.x, i / block.x % block.y, i / (block.x * block.y)}, {x, y, z}, block, grid, i};
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = STACK;
            fiber.context.uc_link = &scheduler;
            makecontext(&fiber.context, body, 0);
        }
        while (alive) {
            moved = false;
            for (auto &fiber : fibers) {
                if (fiber->done) continue;
                running = fiber.get();
                swapcontext(&scheduler, &fiber->context);
            }
            if (!moved) {
                misuse("a kernel's threads wait for each other for ever");
                return;
            }
        }
    }
}
