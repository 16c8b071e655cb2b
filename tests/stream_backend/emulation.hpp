// Blocks of threads on the processor: each thread of a block is a fiber, and fibers change at barriers only. The blocks of a cluster run
// together, each with a window of shared memory of its own.
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

struct Barrier {
    unsigned alive = 0, arrived = 0;
    uint64_t generation = 0;
};

struct Block {
    Barrier barrier;
    std::vector<Warp> warps;
    std::unique_ptr<char[]> window;
    unsigned first, rank;
};

struct Fiber {
    Block *block;
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    cantus_double_place place;
    bool done = false;
};

constexpr size_t STACK = 256 << 10;
constexpr unsigned WARP = 32;

static std::vector<std::unique_ptr<Fiber>> fibers;
static std::vector<Block> blocks;
static Barrier cluster;
static ucontext_t scheduler;
static Fiber *running;
static bool moved;
static const std::function<void()> *kernel;

static void change() {
    Fiber *self = running;
    swapcontext(&self->context, &scheduler);
}

static void open_if_full(Barrier &barrier) {
    if (barrier.alive && barrier.arrived == barrier.alive) {
        barrier.arrived = 0;
        barrier.generation++;
        moved = true;
    }
}

static void meet(Barrier &barrier) {
    uint64_t mine = barrier.generation;
    barrier.arrived++;
    moved = true;
    open_if_full(barrier);
    while (barrier.generation == mine) change();
}

static void body() {
    (*kernel)();
    running->done = true;
    moved = true;
    for (Barrier *barrier : {&running->block->barrier, &cluster}) {
        barrier->alive--;
        open_if_full(*barrier);
    }
    swapcontext(&running->context, &scheduler);
}

static uint64_t alive_in(const Block &block, unsigned warp) {
    uint64_t mask = 0;
    for (unsigned lane = 0; lane < WARP; lane++) {
        unsigned number = warp * WARP + lane;
        if (number < running->place.block_size.x * running->place.block_size.y * running->place.block_size.z &&
            !fibers[block.first + number]->done) mask |= 1ull << lane;
    }
    return mask;
}

}  // namespace emulation

extern "C" __attribute__((visibility("default"))) const cantus_double_place *cantus_double_here() { return &emulation::running->place; }

extern "C" __attribute__((visibility("default"))) void cantus_double_barrier() { emulation::meet(emulation::running->block->barrier); }
extern "C" __attribute__((visibility("default"))) void cantus_double_cluster_barrier() { emulation::meet(emulation::cluster); }
extern "C" __attribute__((visibility("default"))) unsigned cantus_double_cluster_rank() { return emulation::running->block->rank; }
extern "C" __attribute__((visibility("default"))) unsigned cantus_double_cluster_size() { return unsigned(emulation::blocks.size()); }
extern "C" __attribute__((visibility("default"))) void *cantus_double_window(unsigned rank) {
    if (rank >= emulation::blocks.size()) __builtin_trap();
    return emulation::blocks[rank].window.get();
}

// Every lane of the mask gives a value; each gets those of all. The result has a bit for every lane that gave one.
extern "C" __attribute__((visibility("default"))) uint64_t cantus_double_exchange(uint64_t mask, const void *value, unsigned bytes, char (*all)[16]) {
    using namespace emulation;
    unsigned number = running->place.number, lane = number % WARP;
    Block &block = *running->block;
    Warp &warp = block.warps[number / WARP];
    while (warp.giving) change();
    memcpy(warp.values[lane], value, bytes);
    warp.arrived |= 1ull << lane;
    moved = true;
    for (;;) {
        uint64_t wanted = mask & alive_in(block, number / WARP);
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

extern "C" __attribute__((visibility("default"))) uint64_t cantus_double_alive() { return emulation::alive_in(*emulation::running->block, emulation::running->place.number / emulation::WARP); }

static void misuse(const std::string &what);

static void cantus_double_grid(cantus_double_dim grid, cantus_double_dim block, const std::function<void()> &work, unsigned size = 1, unsigned shared = 0) {
    using namespace emulation;
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> guard(one_at_a_time);
    unsigned threads = block.x * block.y * block.z;
    kernel = &work;
    while (fibers.size() > threads * size) fibers.pop_back();
    while (fibers.size() < threads * size) {
        fibers.push_back(std::make_unique<Fiber>());
        fibers.back()->stack.reset(new char[STACK]);
    }
    for (unsigned z = 0; z < grid.z; z++) for (unsigned y = 0; y < grid.y; y++) for (unsigned x = 0; x < grid.x; x += size) {
        blocks.clear();
        blocks.resize(size);
        cluster = Barrier{threads * size};
        for (unsigned rank = 0; rank < size; rank++) {
            Block &own = blocks[rank];
            own.barrier.alive = threads;
            own.warps.assign((threads + WARP - 1) / WARP, Warp());
            own.window.reset(new char[shared + 1]);
            // What nobody wrote is noise, as on a device.
            memset(own.window.get(), 0xA5, shared);
            own.first = rank * threads;
            own.rank = rank;
        }
        for (unsigned i = 0; i < threads * size; i++) {
            Fiber &fiber = *fibers[i];
            unsigned number = i % threads;
            fiber.done = false;
            fiber.block = &blocks[i / threads];
            fiber.place = {{number % block.x, number / block.x % block.y, number / (block.x * block.y)}, {x + i / threads, y, z}, block, grid, number};
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = STACK;
            fiber.context.uc_link = &scheduler;
            makecontext(&fiber.context, body, 0);
        }
        while (cluster.alive) {
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
