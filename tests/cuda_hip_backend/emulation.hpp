// Blocks of threads on the processor: each thread of a block is a fiber, and fibers change at barriers and where they wait for other blocks. The
// blocks of a cluster run together, each with a window of shared memory of its own; so do several clusters, or blocks with a window, which start in
// an order of chance.
#pragma once

#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
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

struct Cluster;

struct Block {
    Barrier barrier;
    std::vector<Warp> warps;
    std::unique_ptr<char[]> window;
    unsigned first, rank;
    Cluster *cluster;
};

struct Cluster {
    Barrier barrier;
    std::vector<Block> blocks;
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
    for (Barrier *barrier : {&running->block->barrier, &running->block->cluster->barrier}) {
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
extern "C" __attribute__((visibility("default"))) void cantus_double_cluster_barrier() { emulation::meet(emulation::running->block->cluster->barrier); }
extern "C" __attribute__((visibility("default"))) unsigned cantus_double_cluster_rank() { return emulation::running->block->rank; }
extern "C" __attribute__((visibility("default"))) unsigned cantus_double_cluster_size() { return unsigned(emulation::running->block->cluster->blocks.size()); }
extern "C" __attribute__((visibility("default"))) void *cantus_double_window(unsigned rank) {
    auto &blocks = emulation::running->block->cluster->blocks;
    if (rank >= blocks.size()) __builtin_trap();
    return blocks[rank].window.get();
}
// Waits for a word of another block; and what a block does that has written one.
extern "C" __attribute__((visibility("default"))) void cantus_double_wait() { emulation::change(); }
extern "C" __attribute__((visibility("default"))) void cantus_double_told() { emulation::moved = true; }

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

// `size` blocks of a cluster, each with a window of `shared` bytes. Without a window blocks run one after the other: what they share is static.
static void cantus_double_grid(cantus_double_dim grid, cantus_double_dim block, const std::function<void()> &work, unsigned size = 1, unsigned shared = 0) {
    using namespace emulation;
    static std::mutex one_at_a_time;
    static uint64_t chance = 1;
    std::lock_guard<std::mutex> guard(one_at_a_time);
    auto below = [](uint64_t limit) {
        chance = chance * 6364136223846793005ull + 1442695040888963407ull;
        return (chance >> 33) % limit;
    };
    kernel = &work;
    // The first blocks of the clusters that have not started.
    std::vector<cantus_double_dim> waiting;
    for (unsigned z = grid.z; z-- > 0;) for (unsigned y = grid.y; y-- > 0;) for (unsigned x = grid.x; x > 0;) waiting.push_back({x -= size, y, z});
    unsigned threads = block.x * block.y * block.z, each = threads * size;
    size_t together = shared ? std::min<size_t>(waiting.size(), size < 4 ? 4 / size : 1) : 1;
    while (fibers.size() > each * together) fibers.pop_back();
    while (fibers.size() < each * together) {
        fibers.push_back(std::make_unique<Fiber>());
        fibers.back()->stack.reset(new char[STACK]);
    }
    std::vector<Cluster> clusters(together);
    auto start = [&](size_t slot) {
        if (shared) std::swap(waiting.back(), waiting[waiting.size() - 1 - below(std::min<size_t>(waiting.size(), 8))]);
        cantus_double_dim at = waiting.back();
        waiting.pop_back();
        Cluster &cluster = clusters[slot];
        cluster.barrier = Barrier{each};
        cluster.blocks.clear();
        cluster.blocks.resize(size);
        for (unsigned rank = 0; rank < size; rank++) {
            Block &own = cluster.blocks[rank];
            own.barrier.alive = threads;
            own.warps.assign((threads + WARP - 1) / WARP, Warp());
            own.window.reset(new char[shared + 1]);
            // What nobody wrote is noise, as on a device.
            memset(own.window.get(), 0xA5, shared);
            own.first = unsigned(slot) * each + rank * threads;
            own.rank = rank;
            own.cluster = &cluster;
        }
        for (unsigned i = 0; i < each; i++) {
            Fiber &fiber = *fibers[slot * each + i];
            unsigned number = i % threads;
            fiber.done = false;
            fiber.block = &cluster.blocks[i / threads];
            fiber.place = {{number % block.x, number / block.x % block.y, number / (block.x * block.y)}, {at.x + i / threads, at.y, at.z}, block, grid, number};
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = STACK;
            fiber.context.uc_link = &scheduler;
            makecontext(&fiber.context, body, 0);
        }
    };
    for (size_t slot = 0; slot < together; slot++) start(slot);
    for (size_t running_now = together; running_now > 0;) {
        moved = false;
        size_t from = below(together);
        for (size_t i = 0; i < together; i++) {
            size_t slot = (from + i) % together;
            if (!clusters[slot].barrier.alive) continue;
            // A block may be far ahead of another.
            for (uint64_t rounds = shared ? 1 + below(4) : 1; rounds > 0; rounds--) for (size_t k = slot * each; k < (slot + 1) * each; k++) {
                if (fibers[k]->done) continue;
                running = fibers[k].get();
                swapcontext(&scheduler, &running->context);
            }
            if (clusters[slot].barrier.alive) continue;
            if (waiting.empty()) running_now--;
            else start(slot);
        }
        if (!moved) {
            misuse("a kernel's threads wait for each other for ever");
            return;
        }
    }
}
