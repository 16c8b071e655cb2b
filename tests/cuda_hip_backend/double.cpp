// A double of CUDA's driver with NVRTC, or (with -DHIP) of the HIP runtime with hiprtc: the same calls with the same meaning, on the
// processor. Streams are queues with a thread behind them, so that what a caller frees or changes too early is seen; the compiler is the
// system's g++, for which `device.hpp` stands in for the GPU's language. It counts calls and live objects, notes every misuse, and
// fails calls to order. Memory that is freed while the stream may touch it is filled with noise, kept, and noted. Nothing here is a model
// of speed.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "emulation.hpp"

#ifdef HIP
// The major version of ROCm.
#ifndef ROCM
#define ROCM 6
#endif
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif
#define API extern "C" __attribute__((visibility("default"))) int

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_IMAGE = 200, NO_CONTEXT = 201, BAD_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, NO_LAUNCH = 719 };

static std::recursive_mutex lock_;
static std::map<std::string, long> calls_, live_;
static std::vector<std::string> misuses_;
static std::map<std::string, std::pair<long, int>> failures_;
static std::map<const void *, std::string> objects_;
static long memory_used_ = 0;
#ifdef HIP
// The first device is current from the start.
static thread_local int current_ = 0;
static bool has_current() { return true; }
static int device_number() { return current_; }
#else
static char contexts_[16];
static thread_local void *current_ = nullptr;
static bool has_current() { return current_ != nullptr; }
static int device_number() { return int((char *)current_ - contexts_); }
#endif

#define GUARD std::lock_guard<std::recursive_mutex> guard_(lock_)

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void misuse(const std::string &what) {
    GUARD;
    misuses_.push_back(what);
    if (getenv("CANTUS_DOUBLE_VERBOSE")) fprintf(stderr, "double: %s\n", what.c_str());
}

// Counts a call; a failure that was ordered for it comes back.
static int begin(const char *call, bool wants_context = true) {
    GUARD;
    calls_[call]++;
    if (wants_context && !has_current()) {
        misuse(std::string(call) + " without a current context");
        return NO_CONTEXT;
    }
    auto ordered = failures_.find(call);
    if (ordered != failures_.end() && --ordered->second.first <= 0) {
        return ordered->second.second;
    }
    return OK;
}

#define BEGIN(role) do { int code_ = begin(role); if (code_) return code_; } while (0)
#define BEGIN_FREE(role) do { int code_ = begin(role, false); if (code_) return code_; } while (0)

template <class T> static T *born(const char *kind, T *object) {
    GUARD;
    objects_[object] = kind;
    live_[kind]++;
    return object;
}

static bool alive(const char *kind, const void *object) {
    GUARD;
    auto found = objects_.find(object);
    if (found != objects_.end() && found->second == kind) return true;
    misuse(std::string("a ") + kind + " that does not live is used");
    return false;
}

static bool die(const char *kind, const void *object) {
    GUARD;
    if (!alive(kind, object)) return false;
    objects_.erase(object);
    live_[kind]--;
    return true;
}

// ---- streams

struct Event {
    bool recorded = false;
    double time = 0;
    // Whether its last recording is still to come: what waits for an event waits for the recording that was the last one then.
    std::shared_ptr<bool> pending = std::make_shared<bool>(false);
};

// Memory that a step touches.
struct Range {
    uint64_t start;
    size_t bytes;
};

struct Module;

struct Step {
    std::function<void()> run;
    // Of a launch: how many of its module, or of its graph, are under way.
    std::vector<std::shared_ptr<std::atomic<long>>> launches;
    std::vector<Range> uses;
    // Of a launch: what it runs, with how many threads, and blocks of a cluster and bytes of shared memory where it is one of clusters.
    Module *module = nullptr;
    unsigned shape[6] = {}, cluster = 0, shared = 0;
};

// What steps that are not done yet touch.
static std::vector<Range> used_;
// While this is set nothing in a stream goes on.
static std::atomic<bool> held_{false};

static void use(const std::vector<Range> &ranges) {
    GUARD;
    used_.insert(used_.end(), ranges.begin(), ranges.end());
}
static void leave(const std::vector<Range> &ranges) {
    GUARD;
    for (const Range &range : ranges) {
        for (size_t i = 0; i < used_.size(); i++) {
            if (used_[i].start == range.start && used_[i].bytes == range.bytes) {
                used_.erase(used_.begin() + long(i));
                break;
            }
        }
    }
}
static bool in_use(uint64_t start, size_t bytes) {
    GUARD;
    for (const Range &range : used_) {
        if (range.start < start + bytes && start < range.start + range.bytes) return true;
    }
    return false;
}

typedef std::shared_ptr<std::atomic<long>> Launches;
static Launches none() { return std::make_shared<std::atomic<long>>(0); }
// Of all modules.
static Launches launches_ = none();

struct Stream {
    std::deque<Step> work;
    // What is put in while this is set makes a graph.
    std::unique_ptr<std::vector<Step>> captured;
    std::mutex lock;
    std::condition_variable changed;
    bool ending = false, busy = false;
    int device = device_number();
    std::thread thread;
    Stream() : thread([this] { serve(); }) {}
    ~Stream() {
        {
            std::lock_guard<std::mutex> guard(lock);
            ending = true;
        }
        changed.notify_all();
        thread.join();
    }
    void serve() {
        std::unique_lock<std::mutex> guard(lock);
        for (;;) {
            changed.wait(guard, [this] { return ending || !work.empty(); });
            if (work.empty()) return;
            Step next = std::move(work.front());
            work.pop_front();
            busy = true;
            guard.unlock();
            // Long enough for a hasty caller to go wrong.
            usleep(useconds_t(setting("CANTUS_DOUBLE_DELAY_US", 20)));
            while (held_) usleep(500);
            next.run();
            next.run = nullptr;
            leave(next.uses);
            for (auto &launches : next.launches) --*launches;
            guard.lock();
            busy = false;
            changed.notify_all();
        }
    }
    void put(std::function<void()> run) { put(Step{std::move(run), {}, {}}); }
    void put(std::vector<Range> uses, std::function<void()> run) { put(Step{std::move(run), {}, std::move(uses)}); }
    void put(Step step) {
        std::lock_guard<std::mutex> guard(lock);
        if (captured) {
            captured->push_back(std::move(step));
            return;
        }
        for (auto &launches : step.launches) ++*launches;
        use(step.uses);
        work.push_back(std::move(step));
        changed.notify_all();
    }
    void settle() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return work.empty() && !busy; });
    }
};

static std::mutex event_lock_;
static std::condition_variable event_changed_;
static std::set<Stream *> streams_;
static int sticky_ = OK;

// The default streams of each device, which always live: the driver's own numbers stand for them. CUDA's null is one of them, which only other
// libraries use.
static bool is_default(void *stream) {
    if (uintptr_t(stream) == NAME(0, 1)) return setting("CANTUS_DOUBLE_NULL_STREAM", 0);
    return uintptr_t(stream) <= 2;
}
static Stream *default_stream() {
    static std::map<int, Stream *> made;
    GUARD;
    Stream *&stream = made[device_number()];
    if (!stream) streams_.insert(stream = new Stream);
    return stream;
}
// A stream by its handle, if it lives.
static Stream *stream_of(void *stream) {
    if (is_default(stream)) return default_stream();
    return alive("stream", stream) ? (Stream *)stream : nullptr;
}

static void settle_all() {
    std::vector<Stream *> all;
    {
        GUARD;
        all.assign(streams_.begin(), streams_.end());
    }
    for (Stream *stream : all) stream->settle();
}

// ---- devices

API NAME(cuInit, hipInit)(unsigned flags) { BEGIN_FREE("init"); return flags ? INVALID : OK; }
API NAME(cuDriverGetVersion, hipDriverGetVersion)(int *version) {
    BEGIN_FREE("version");
    *version = int(setting("CANTUS_DOUBLE_VERSION", NAME(13000, ROCM * 10000000 + 221153)));
    return OK;
}
API NAME(cuDeviceGetCount, hipGetDeviceCount)(int *count) { BEGIN_FREE("device_count"); *count = int(setting("CANTUS_DOUBLE_DEVICES", 2)); return OK; }
API NAME(cuDeviceGet, hipDeviceGet)(int *device, int index) { BEGIN_FREE("device_get"); *device = index; return OK; }
API NAME(cuDeviceGetName, hipDeviceGetName)(char *name, int size, int device) {
    BEGIN_FREE("device_name");
    snprintf(name, size_t(size), "%s double %d", NAME("CUDA", "HIP"), device);
    return OK;
}
API NAME(cuDeviceTotalMem_v2, hipDeviceTotalMem)(size_t *bytes, int) { BEGIN_FREE("device_memory"); *bytes = size_t(setting("CANTUS_DOUBLE_MEMORY", 1L << 30)); return OK; }
API NAME(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value, int attribute, int) {
    BEGIN_FREE("device_attribute");
    switch (attribute) {
    case NAME(1, 56): *value = 1024; break;
    case NAME(2, 26): case NAME(3, 27): *value = 1024; break;
    case NAME(4, 28): *value = 64; break;
    case NAME(5, 29): *value = 2147483647; break;
    case NAME(6, 30): case NAME(7, 31): *value = 65535; break;
    case NAME(8, 74): *value = 49152; break;
    case NAME(10, 87): *value = 32; break;
    case NAME(18, 16): *value = 0; break;
    case NAME(75, 23): *value = 9; break;
    case NAME(76, 61): *value = 0; break;
#ifndef HIP
    case 97: *value = 232448; break;
    case 120: *value = int(setting("CANTUS_DOUBLE_CLUSTERS", 1)); break;
#endif
    case NAME(115, 88): *value = int(setting("CANTUS_DOUBLE_POOLS", 1)); break;
    default: return INVALID;
    }
    return OK;
}
API NAME(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(void **context, int device) {
    BEGIN_FREE("context_retain");
    GUARD;
    live_["context"]++;
    *context = NAME(contexts_ + device, (void *)(intptr_t)(device + 1));
    return OK;
}
API NAME(cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease)(int) {
    BEGIN_FREE("context_release");
    GUARD;
    if (--live_["context"] < 0) misuse("a context is released too often");
    return OK;
}
#ifdef HIP
API hipSetDevice(int device) {
    BEGIN_FREE("context_set");
    if (device < 0 || device >= setting("CANTUS_DOUBLE_DEVICES", 2)) return 101;
    current_ = device;
    return OK;
}
API hipGetDevice(int *device) { BEGIN_FREE("context_get"); *device = current_; return OK; }
// The structure's size, and where the name of the architecture is in it: as it was up to ROCm 5, and by another name of the function since.
static int properties(void *properties, size_t bytes, size_t name) {
    BEGIN_FREE("properties");
    memset(properties, 0, bytes);
    strcpy((char *)properties, "HIP double");
    strcpy((char *)properties + name, "gfx90a:sramecc+:xnack-");
    return OK;
}
API hipGetDeviceProperties(void *all, int) { return properties(all, 792, 396); }
#if ROCM >= 6
API hipGetDevicePropertiesR0600(void *all, int) {
    BEGIN_FREE("properties_r0600");
    return properties(all, 1472, 1160);
}
#endif
#else
API cuCtxSetCurrent(void *context) { BEGIN_FREE("context_set"); current_ = context; return OK; }
API cuCtxGetCurrent(void **context) { BEGIN_FREE("context_get"); *context = current_; return OK; }
#endif
// Of the first device, where it was set.
static unsigned char uuid_[16];
static bool has_uuid_ = false;
extern "C" __attribute__((visibility("default"))) void cantus_double_uuid(const unsigned char *uuid) {
    memcpy(uuid_, uuid, 16);
    has_uuid_ = true;
}
API NAME(cuDeviceGetUuid, hipDeviceGetUuid)(unsigned char *uuid, int device) {
    BEGIN_FREE("device_uuid");
    for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)(16 * device + i + 1);
    if (device == 0 && has_uuid_) memcpy(uuid, uuid_, 16);
    return OK;
}
API NAME(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char *text, int size, int device) {
    BEGIN_FREE("device_pci");
    snprintf(text, size_t(size), "0000:%02X:00.0", device + 1);
    return OK;
}

API NAME(cuStreamCreate, hipStreamCreateWithFlags)(void **stream, unsigned) {
    BEGIN("stream_create");
    GUARD;
    Stream *made = born("stream", new Stream);
    streams_.insert(made);
    *stream = made;
    return OK;
}
API NAME(cuStreamDestroy_v2, hipStreamDestroy)(void *stream) {
    BEGIN("stream_destroy");
    if (!die("stream", stream)) return BAD_HANDLE;
    {
        GUARD;
        streams_.erase((Stream *)stream);
    }
    delete (Stream *)stream;
    return OK;
}

API NAME(cuEventCreate, hipEventCreateWithFlags)(void **event, unsigned) { BEGIN("event_create"); *event = born("event", new Event); return OK; }
API NAME(cuEventDestroy_v2, hipEventDestroy)(void *event) {
    BEGIN("event_destroy");
    if (!die("event", event)) return BAD_HANDLE;
    // What the stream still needs of it stays, as with the driver: events are never freed here.
    return OK;
}
API NAME(cuEventRecord, hipEventRecord)(void *event, void *stream) {
    BEGIN("event_record");
    Stream *into = stream_of(stream);
    if (!alive("event", event) || !into) return BAD_HANDLE;
    Event *target = (Event *)event;
    auto pending = std::make_shared<bool>(true);
    {
        std::lock_guard<std::mutex> guard(event_lock_);
        target->recorded = true;
        target->pending = pending;
    }
    into->put([target, pending] {
        std::lock_guard<std::mutex> guard(event_lock_);
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        target->time = double(now.tv_sec) * 1e3 + double(now.tv_nsec) / 1e6;
        *pending = false;
        event_changed_.notify_all();
    });
    return OK;
}
API NAME(cuEventQuery, hipEventQuery)(void *event) {
    BEGIN("event_query");
    if (!alive("event", event)) return BAD_HANDLE;
    std::lock_guard<std::mutex> guard(event_lock_);
    if (*((Event *)event)->pending) return NOT_READY;
    return sticky_;
}
API NAME(cuEventSynchronize, hipEventSynchronize)(void *event) {
    BEGIN("event_wait");
    if (!alive("event", event)) return BAD_HANDLE;
    std::unique_lock<std::mutex> guard(event_lock_);
    auto pending = ((Event *)event)->pending;
    event_changed_.wait(guard, [pending] { return !*pending; });
    return sticky_;
}
API NAME(cuStreamWaitEvent, hipStreamWaitEvent)(void *stream, void *event, unsigned flags) {
    BEGIN("stream_wait");
    Stream *into = stream_of(stream);
    if (!alive("event", event) || !into) return BAD_HANDLE;
    if (flags) return INVALID;
    std::shared_ptr<bool> pending;
    {
        std::lock_guard<std::mutex> guard(event_lock_);
        pending = ((Event *)event)->pending;
    }
    into->put([pending] {
        std::unique_lock<std::mutex> guard(event_lock_);
        event_changed_.wait(guard, [pending] { return !*pending; });
    });
    return OK;
}
#ifndef HIP
API cuStreamSynchronize(void *stream) {
    BEGIN("stream_synchronize");
    Stream *of = stream_of(stream);
    if (!of) return BAD_HANDLE;
    of->settle();
    return OK;
}
// Other libraries' words for a failure.
API cuGetErrorName(int code, const char **text) { *text = "DOUBLE"; return code == OK ? INVALID : OK; }
API cuGetErrorString(int code, const char **text) { *text = "the double was told to fail"; return code == OK ? INVALID : OK; }
#endif
API NAME(cuCtxSynchronize, hipDeviceSynchronize)() {
    BEGIN("synchronize");
    settle_all();
    return OK;
}
API NAME(cuEventElapsedTime, hipEventElapsedTime)(float *milliseconds, void *start, void *end) {
    BEGIN("event_elapsed");
    if (!alive("event", start) || !alive("event", end)) return BAD_HANDLE;
    std::lock_guard<std::mutex> guard(event_lock_);
    *milliseconds = float(((Event *)end)->time - ((Event *)start)->time);
    return OK;
}

// ---- memory

struct Allocation { size_t bytes; bool in_stream; bool is_mapped = false; };
static std::map<uint64_t, Allocation> memory_;
static std::map<void *, size_t> pinned_;
static size_t size_of(uint64_t address);
static void gone(void *start, size_t bytes, const char *what, bool at_work);

static int allocate(uint64_t *address, size_t bytes, bool in_stream) {
    GUARD;
    if (memory_used_ + long(bytes) > setting("CANTUS_DOUBLE_MEMORY", 1L << 30)) return NO_MEMORY;
    void *block = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!block) return NO_MEMORY;
    // What nobody wrote is noise, as on a device.
    memset(block, 0xA5, bytes);
    memory_[uint64_t(block)] = {bytes, in_stream};
    memory_used_ += long(bytes);
    live_["memory"]++;
    *address = uint64_t(block);
    return OK;
}
static int release(uint64_t address, bool in_stream) {
    GUARD;
    auto found = memory_.find(address);
    if (found == memory_.end() || found->second.in_stream != in_stream) {
        misuse("memory that does not live is freed, or in another way than it was taken");
        return INVALID;
    }
    memory_used_ -= long(found->second.bytes);
    memory_.erase(found);
    live_["memory"]--;
    return OK;
}
static size_t size_of(uint64_t address) {
    GUARD;
    auto found = memory_.find(address);
    return found == memory_.end() ? 0 : found->second.bytes;
}
// Frees memory. What a stream may still touch becomes noise, and stays.
static void gone(void *start, size_t bytes, const char *what, bool at_work) {
    bool used = at_work || in_use(uint64_t(start), bytes);
    memset(start, 0xDD, bytes);
    if (used) misuse(std::string(what) + " is freed while the stream uses it");
    else free(start);
}
static bool mapped(uint64_t address) {
    GUARD;
    auto found = memory_.find(address);
    return found != memory_.end() && found->second.is_mapped;
}
static bool inside(uint64_t address, size_t bytes, const char *what) {
    GUARD;
    auto found = memory_.upper_bound(address);
    if (found != memory_.begin()) {
        --found;
        if (address >= found->first && address + bytes <= found->first + found->second.bytes) return true;
    }
    misuse(std::string(what) + " outside of live memory");
    return false;
}

API NAME(cuMemAlloc_v2, hipMalloc)(uint64_t *address, size_t bytes) { BEGIN("memory_allocate"); return allocate(address, bytes, false); }
API NAME(cuMemFree_v2, hipFree)(uint64_t address) {
    BEGIN("memory_free");
    size_t bytes = size_of(address);
    bool is_mapped = mapped(address);
    int code = release(address, false);
    if (is_mapped) {
        if (*launches_ > 0 || in_use(address, bytes)) misuse("mapped memory is freed while the stream uses it");
        return code;
    }
    // A driver would wait for the stream here, which may take for ever.
    if (code == OK) gone((void *)address, bytes, "memory", *launches_ > 0);
    return code;
}
// What llvmpipe exports: a file that begins with its size and the place of the memory in it.
struct External { char *file; uint64_t file_bytes, start, bytes; };
struct ExternalMemory { int kind; union { int fd; void *handles[2]; }; unsigned long long bytes; unsigned flags, reserved[16]; };
struct ExternalRange { unsigned long long offset, bytes; unsigned flags, reserved[16]; };
API NAME(cuImportExternalMemory, hipImportExternalMemory)(void **memory, const ExternalMemory *given) {
    BEGIN("external_import");
    uint64_t head[2];
    if (given->kind != 1 || given->flags != 1 || pread(given->fd, head, sizeof head, 0) != sizeof head) return INVALID;
    if (head[1] + given->bytes > head[0]) return INVALID;
    void *file = mmap(nullptr, head[0], PROT_READ | PROT_WRITE, MAP_SHARED, given->fd, 0);
    if (file == MAP_FAILED) return INVALID;
    close(given->fd);
    *memory = born("external memory", new External{(char *)file, head[0], head[1], given->bytes});
    return OK;
}
API NAME(cuExternalMemoryGetMappedBuffer, hipExternalMemoryGetMappedBuffer)(uint64_t *address, void *memory, const ExternalRange *given) {
    BEGIN("external_map");
    if (!alive("external memory", memory)) return BAD_HANDLE;
    External *external = (External *)memory;
    if (given->flags || given->offset + given->bytes > external->bytes) return INVALID;
    GUARD;
    *address = uint64_t(external->file + external->start + given->offset);
    memory_[*address] = {given->bytes, false, true};
    memory_used_ += long(given->bytes);
    live_["memory"]++;
    return OK;
}
API NAME(cuDestroyExternalMemory, hipDestroyExternalMemory)(void *memory) {
    BEGIN("external_destroy");
    if (!die("external memory", memory)) return BAD_HANDLE;
    External *external = (External *)memory;
    if (mapped(uint64_t(external->file + external->start))) misuse("external memory is destroyed before its mapping is freed");
    munmap(external->file, external->file_bytes);
    delete external;
    return OK;
}
API NAME(cuMemAllocAsync, hipMallocAsync)(uint64_t *address, size_t bytes, void *stream) {
    BEGIN("memory_allocate_in_stream");
    if (!stream_of(stream)) return BAD_HANDLE;
    return allocate(address, bytes, true);
}
API NAME(cuMemFreeAsync, hipFreeAsync)(uint64_t address, void *stream) {
    BEGIN("memory_free_in_stream");
    Stream *of = stream_of(stream);
    if (!of) return BAD_HANDLE;
    size_t bytes = size_of(address);
    int code = release(address, true);
    if (code == OK) of->put([address, bytes] {
        memset((void *)address, 0xDD, bytes);
        free((void *)address);
    });
    return code;
}
API NAME(cuMemHostAlloc, hipHostMalloc)(void **start, size_t bytes, unsigned) {
    BEGIN("host_allocate");
    *start = born("pinned", aligned_alloc(64, (bytes + 63) / 64 * 64));
    GUARD;
    pinned_[*start] = bytes;
    return OK;
}
API NAME(cuMemFreeHost, hipHostFree)(void *start) {
    BEGIN("host_free");
    if (!die("pinned", start)) return INVALID;
    GUARD;
    gone(start, pinned_[start], "page-locked memory", false);
    pinned_.erase(start);
    return OK;
}

static uint64_t sum(const void *start, size_t bytes) {
    uint64_t hash = 1469598103934665603ull;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const uint8_t *)start)[i]) * 1099511628211ull;
    return hash;
}

// Memory that is not page-locked is copied in at once and waited for on the way out. Other libraries rely on it; ours do not.
static bool is_pageable(const void *place) {
    if (!setting("CANTUS_DOUBLE_PAGEABLE", 0)) return false;
    GUARD;
    auto next = pinned_.upper_bound((void *)place);
    return next == pinned_.begin() || (const char *)std::prev(next)->first + std::prev(next)->second <= place;
}
API NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(uint64_t target, const void *source, size_t bytes, void *stream) {
    BEGIN("copy_in");
    Stream *into = stream_of(stream);
    if (!into) return BAD_HANDLE;
    if (!inside(target, bytes, "a copy in")) return INVALID;
    if (into->device != device_number()) misuse("a copy while another device is current");
    if (is_pageable(source)) {
        auto staged = std::make_shared<std::vector<char>>((const char *)source, (const char *)source + bytes);
        into->put({{target, bytes}}, [=] { memcpy((void *)target, staged->data(), bytes); });
        return OK;
    }
    uint64_t before = sum(source, bytes);
    into->put({{uint64_t(source), bytes}, {target, bytes}}, [=] {
        if (sum(source, bytes) != before) misuse("the source of a copy changed before the copy");
        memcpy((void *)target, source, bytes);
    });
    return OK;
}
API NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *target, uint64_t source, size_t bytes, void *stream) {
    BEGIN("copy_out");
    Stream *into = stream_of(stream);
    if (!into) return BAD_HANDLE;
    if (!inside(source, bytes, "a copy out")) return INVALID;
    into->put({{uint64_t(target), bytes}, {source, bytes}}, [=] { memcpy(target, (void *)source, bytes); });
    if (is_pageable(target)) into->settle();
    return OK;
}
static int copy_device(uint64_t target, uint64_t source, size_t bytes, void *stream) {
    Stream *into = stream_of(stream);
    if (!into) return BAD_HANDLE;
    if (!inside(target, bytes, "a copy") || !inside(source, bytes, "a copy")) return INVALID;
    if (target < source + bytes && source < target + bytes) misuse("a copy overlaps itself");
    into->put({{target, bytes}, {source, bytes}}, [=] { memmove((void *)target, (void *)source, bytes); });
    return OK;
}
API NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(uint64_t target, uint64_t source, size_t bytes, void *stream) {
    BEGIN("copy_within");
    return copy_device(target, source, bytes, stream);
}
API NAME(cuMemcpyPeerAsync, hipMemcpyPeerAsync)(uint64_t target, NAME(void *, int), uint64_t source, NAME(void *, int), size_t bytes, void *stream) {
    BEGIN("copy_peer");
    return copy_device(target, source, bytes, stream);
}
API NAME(cuMemsetD8Async, hipMemsetD8Async)(uint64_t target, uint8_t value, size_t bytes, void *stream) {
    BEGIN("fill");
    Stream *into = stream_of(stream);
    if (!into) return BAD_HANDLE;
    if (!inside(target, bytes, "a fill")) return INVALID;
    into->put({{target, bytes}}, [=] { memset((void *)target, value, bytes); });
    return OK;
}

// ---- code

struct Module {
    void *library;
    void *(*capture)(void **);
    void (*run)(void *);
    void (*drop)(void *);
    Launches launches;
    // What launches may ask for.
    unsigned shared = 49152;
    bool large_clusters = false;
};

API NAME(cuModuleLoadData, hipModuleLoadData)(void **module, const void *image) {
    BEGIN("module_load");
    // The image is a shared library with its size before it, as the compiler below makes it.
    struct { char mark[8]; uint64_t bytes; } head;
    memcpy(&head, image, sizeof head);
    bool text = !memcmp(head.mark, "CANTUSTX", 8);
    if (!text && memcmp(head.mark, "CANTUSSO", 8)) return NO_IMAGE;
    // Machine code may be for another device, or from a newer compiler; text is compiled here.
    BEGIN(text ? "module_compile" : "module_load_machine_code");
    char path[] = "/tmp/cantus-double-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) return NO_IMAGE;
    bool whole = write(file, (const char *)image + sizeof head, head.bytes) == ssize_t(head.bytes);
    close(file);
    void *library = whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library && getenv("CANTUS_DOUBLE_VERBOSE")) fprintf(stderr, "double: %s\n", dlerror());
    unlink(path);
    if (!library) return NO_IMAGE;
    auto made = new Module{library, (void *(*)(void **))dlsym(library, "cantus_double_capture"),
                           (void (*)(void *))dlsym(library, "cantus_double_run"),
                           (void (*)(void *))dlsym(library, "cantus_double_drop"), none()};
    *module = born("module", made);
    return OK;
}
API NAME(cuModuleUnload, hipModuleUnload)(void *module) {
    BEGIN("module_unload");
    if (!die("module", module)) return BAD_HANDLE;
    if (*((Module *)module)->launches) {
        misuse("code is unloaded while the stream runs it");
        settle_all();
    }
    dlclose(((Module *)module)->library);
    delete (Module *)module;
    return OK;
}
API NAME(cuModuleGetFunction, hipModuleGetFunction)(void **function, void *module, const char *name) {
    BEGIN("module_function");
    if (!alive("module", module)) return BAD_HANDLE;
    if (!dlsym(((Module *)module)->library, name)) return NOT_FOUND;
    *function = module;
    return OK;
}
API NAME(cuFuncGetAttribute, hipFuncGetAttribute)(int *value, int, void *function) {
    BEGIN("function_attribute");
    if (!alive("module", function)) return BAD_HANDLE;
    *value = int(setting("CANTUS_DOUBLE_THREADS", 1024));
    return OK;
}
API NAME(cuLaunchKernel, hipModuleLaunchKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                               unsigned shared, void *stream, void **arguments, void **extra) {
    BEGIN("launch");
    if (!alive("module", function) || !alive("stream", stream)) return BAD_HANDLE;
    if (!gx || !gy || !gz || gy > 65535 || gz > 65535 || bx * by * bz > 1024 || shared > ((Module *)function)->shared || extra) return INVALID;
    Module *module = (Module *)function;
    // Captured once, run as often as a graph is: given up with the last step that holds it.
    std::shared_ptr<void> captured(module->capture(arguments), module->drop);
    auto run = module->run;
    auto work = [=] { cantus_double_grid({gx, gy, gz}, {bx, by, bz}, [=] { run(captured.get()); }, 1, shared); };
    ((Stream *)stream)->put(Step{work, {launches_, module->launches}, {}, module, {gx, gy, gz, bx, by, bz}, 0, shared});
    return OK;
}

#ifndef HIP
// Thread-block clusters: a launch with one attribute, the cluster's size.

struct LaunchAttribute { int id, padding; unsigned value[16]; };
struct LaunchConfig { unsigned grid[3], block[3], shared; void *stream; const LaunchAttribute *attributes; unsigned count; };

API cuFuncSetAttribute(void *function, int attribute, int value) {
    BEGIN("function_attribute_set");
    if (!alive("module", function)) return BAD_HANDLE;
    Module *module = (Module *)function;
    if (attribute == 8) module->shared = unsigned(value);
    else if (attribute == 14) module->large_clusters = value != 0;
    else return INVALID;
    return OK;
}
// The cluster's size; 0 for what no device launches.
static unsigned cluster_of(Module *module, const LaunchConfig *config) {
    if (config->count != 1 || config->attributes->id != 4) return 0;
    unsigned size = config->attributes->value[0], threads = config->block[0] * config->block[1] * config->block[2];
    bool fits = size == 1 || size == 2 || size == 4 || size == 8 || (size == 16 && module->large_clusters);
    if (config->attributes->value[1] != 1 || config->attributes->value[2] != 1 || !fits) return 0;
    if (!config->grid[0] || config->grid[0] % size || config->grid[1] != 1 || config->grid[2] != 1) return 0;
    return threads && threads <= 1024 && config->shared <= module->shared ? size : 0;
}
API cuOccupancyMaxActiveClusters(int *count, void *function, const LaunchConfig *config) {
    BEGIN("active_clusters");
    if (!alive("module", function)) return BAD_HANDLE;
    unsigned size = cluster_of((Module *)function, config);
    if (!size) return INVALID;
    *count = size <= unsigned(setting("CANTUS_DOUBLE_CLUSTER", 16)) ? 1 : 0;
    return OK;
}
API cuLaunchKernelEx(const LaunchConfig *config, void *function, void **arguments, void **extra) {
    BEGIN("launch_cluster");
    if (!alive("module", function) || !alive("stream", config->stream)) return BAD_HANDLE;
    Module *module = (Module *)function;
    unsigned size = cluster_of(module, config), shared = config->shared;
    if (!size || extra) return INVALID;
    std::shared_ptr<void> captured(module->capture(arguments), module->drop);
    auto run = module->run;
    cantus_double_dim grid = {config->grid[0], 1, 1}, block = {config->block[0], config->block[1], config->block[2]};
    auto work = [=] { cantus_double_grid(grid, block, [=] { run(captured.get()); }, size, shared); };
    Step step{work, {launches_, module->launches}, {}, module, {grid.x, 1, 1, block.x, block.y, block.z}};
    step.cluster = size, step.shared = shared;
    ((Stream *)config->stream)->put(step);
    return OK;
}
#endif

// ---- graphs

struct Graph {
    std::vector<Step> steps;
    Launches launches = none();
};

API NAME(cuStreamBeginCapture_v2, hipStreamBeginCapture)(void *stream, int mode) {
    BEGIN("capture_begin");
    if (!alive("stream", stream)) return BAD_HANDLE;
    Stream *queue = (Stream *)stream;
    std::lock_guard<std::mutex> guard(queue->lock);
    if (queue->captured || mode < 0 || mode > 2) return INVALID;
    queue->captured.reset(new std::vector<Step>);
    return OK;
}
API NAME(cuStreamEndCapture, hipStreamEndCapture)(void *stream, void **graph) {
    BEGIN("capture_end");
    if (!alive("stream", stream)) return BAD_HANDLE;
    Stream *queue = (Stream *)stream;
    std::lock_guard<std::mutex> guard(queue->lock);
    if (!queue->captured) return INVALID;
    *graph = born("graph", new Graph{std::move(*queue->captured)});
    queue->captured.reset();
    return OK;
}
API NAME(cuGraphDestroy, hipGraphDestroy)(void *graph) {
    BEGIN("graph_destroy");
    if (!die("graph", graph)) return BAD_HANDLE;
    delete (Graph *)graph;
    return OK;
}
API NAME(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(void **executable, void *graph, unsigned long long flags) {
    BEGIN("instantiate");
    if (!alive("graph", graph)) return BAD_HANDLE;
    if (flags) return INVALID;
    Graph *made = new Graph{((Graph *)graph)->steps};
    for (Step &step : made->steps) step.launches.push_back(made->launches);
    *executable = born("executable graph", made);
    return OK;
}
API NAME(cuGraphLaunch, hipGraphLaunch)(void *executable, void *stream) {
    BEGIN("graph_launch");
    if (!alive("executable graph", executable) || !alive("stream", stream)) return BAD_HANDLE;
    for (const Step &step : ((Graph *)executable)->steps) ((Stream *)stream)->put(step);
    return OK;
}
#ifndef HIP
// The node that a capture made last: its place, by a number that is no address.
static const uintptr_t FIRST_NODE = 0x7000;
API cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id, void **graph, void *const **nodes, size_t *count) {
    BEGIN_FREE("capture_info");
    if (!alive("stream", stream)) return BAD_HANDLE;
    Stream *queue = (Stream *)stream;
    std::lock_guard<std::mutex> guard(queue->lock);
    *status = queue->captured ? 1 : 0;
    if (!queue->captured) return OK;
    static thread_local void *last;
    last = (void *)(FIRST_NODE + queue->captured->size() - 1);
    *id = 1;
    *graph = queue;
    *nodes = &last;
    *count = queue->captured->empty() ? 0 : 1;
    return OK;
}
struct NodeParameters { void *function; unsigned shape[6], shared; void **arguments, **extra; void *kernel, *context; };
API cuGraphExecKernelNodeSetParams_v2(void *executable, void *node, const NodeParameters *given) {
    BEGIN("set_parameters");
    if (!alive("executable graph", executable) || !alive("module", given->function)) return BAD_HANDLE;
    Graph *graph = (Graph *)executable;
    size_t place = uintptr_t(node) - FIRST_NODE;
    if (place >= graph->steps.size()) return BAD_HANDLE;
    Step &step = graph->steps[place];
    Module *module = (Module *)given->function;
    // The same kernel with as many threads: others would be allowed, and are not asked for.
    if (step.module != module || memcmp(step.shape, given->shape, sizeof step.shape) || given->shared != step.shared || given->extra || given->kernel || given->context) {
        misuse("a launch in a graph becomes another one");
        return INVALID;
    }
    std::shared_ptr<void> captured(module->capture(given->arguments), module->drop);
    auto run = module->run;
    const unsigned *s = given->shape;
    cantus_double_dim grid = {s[0], s[1], s[2]}, block = {s[3], s[4], s[5]};
    // A node stays one of clusters.
    unsigned cluster = step.cluster ? step.cluster : 1, shared = step.shared;
    step.run = [=] { cantus_double_grid(grid, block, [=] { run(captured.get()); }, cluster, shared); };
    return OK;
}
#endif
API NAME(cuGraphExecDestroy, hipGraphExecDestroy)(void *executable) {
    BEGIN("executable_destroy");
    if (*((Graph *)executable)->launches) misuse("a graph is destroyed while the stream runs it");
    if (!die("executable graph", executable)) return BAD_HANDLE;
    delete (Graph *)executable;
    return OK;
}

// ---- the compiler

#ifndef WITHOUT_COMPILER
struct Program { std::string source, name, log, code; };

// A copy of this library under a name with "13" is a newer compiler.
API NAME(nvrtcVersion, hiprtcVersion)(int *major, int *minor) {
#ifdef HIP
    *major = ROCM;
    *minor = 0;
#else
    Dl_info info;
    bool newer = dladdr((void *)&begin, &info) && strstr(info.dli_fname, "double-13");
    *major = newer ? 13 : 12;
    *minor = newer ? 0 : 9;
#endif
    return OK;
}
API NAME(nvrtcCreateProgram, hiprtcCreateProgram)(void **program, const char *source, const char *name, int, const char *const *, const char *const *) {
    BEGIN_FREE("compiler_create");
    *program = born("program", new Program{source, name, "", ""});
    return OK;
}
API NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(void **program) {
    BEGIN_FREE("compiler_destroy");
    if (!die("program", *program)) return INVALID;
    delete (Program *)*program;
    *program = nullptr;
    return OK;
}
static std::string slurp(const std::string &path) {
    std::string text;
    if (FILE *file = fopen(path.c_str(), "rb")) {
        char block[65536];
        for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;) text.append(block, n);
        fclose(file);
    }
    return text;
}
// Inline PTX becomes a call: asm("add.rn.f16 %0, %1, %2;" : "=h"(r) : "h"(a), "h"(b)) is ptx("add.rn.f16 %0, %1, %2;", r, a, b).
static std::string without_ptx(const std::string &source) {
    std::string result;
    size_t done = 0;
    for (size_t at = source.find("asm"); at != std::string::npos; at = source.find("asm", at + 3)) {
        size_t open = at + 3;
        if (source.compare(open, 9, " volatile") == 0) open += 9;
        if (source.compare(open, 2, "(\"") != 0) continue;
        const size_t quote = source.find('"', open + 2), last = source.find(';', quote);
        if (last == std::string::npos || source.compare(quote, 4, "\" : ") != 0 || source[last - 1] != ')') continue;
        result += source.substr(done, at - done) + "ptx(" + source.substr(open + 1, quote - open);
        // An operand is its constraint in quotes, and a name in brackets.
        for (size_t operand = source.find("\"(", quote + 4); operand < last; operand = source.find("\"(", operand + 2)) {
            const size_t close = source.find(')', operand);
            result += ", " + source.substr(operand + 2, close - operand - 2);
        }
        result += ");";
        done = last + 1;
    }
    return result + source.substr(done);
}
API NAME(nvrtcCompileProgram, hiprtcCompileProgram)(void *handle, int count, const char *const *options) {
    BEGIN_FREE("compiler_compile");
    const std::string wanted = NAME("--gpu-architecture=sm_90", "--offload-arch=gfx90a:sramecc+:xnack-");
    const std::string portable = NAME("--gpu-architecture=compute_90", "none");
    bool named = false, text = false;
    for (int i = 0; i < count; i++) {
        named = named || wanted == options[i];
        text = text || portable == options[i];
    }
    if (!named && !text) misuse("the compiler is not told the device's architecture");
    BEGIN_FREE(text ? "compiler_compile_text" : "compiler_compile_machine_code");
    Program *program = (Program *)handle;
    char folder[] = "/tmp/cantus-double-XXXXXX";
    if (!mkdtemp(folder)) return 6;
    std::string base = folder, self;
    Dl_info info;
    if (dladdr((void *)&slurp, &info)) self = info.dli_fname;
    // A kernel asks the library that launches it, whichever copy compiled it.
    if (const char *driver = getenv("CANTUS_DOUBLE_LIBRARY")) self = driver;
    const char *headers = getenv("CANTUS_DOUBLE_HEADERS");
    FILE *file = fopen((base + "/kernel.cpp").c_str(), "w");
    // The header comes first: the tests have it compiled ahead.
    fprintf(file, "#include \"device.hpp\"\n#line 1 \"%s\"\n%s\nCANTUS_DOUBLE_ENTRY(%s)\n", program->name.c_str(),
            without_ptx(program->source).c_str(), program->name.c_str());
    fclose(file);
    std::string command = "g++ -std=c++17 -O1 -w -fno-strict-aliasing -ffp-contract=off -shared -fPIC -DCANTUS_DOUBLE_" NAME("CUDA", "HIP") " -I '" + std::string(headers ? headers : ".") +
                          "' " + base + "/kernel.cpp '" + self + "' -o " + base + "/kernel.so 2> " + base + "/log";
    int code = system(command.c_str());
    program->log = slurp(base + "/log");
    std::string library = slurp(base + "/kernel.so");
    if (!getenv("CANTUS_DOUBLE_KEEP") && system(("rm -r " + base).c_str())) misuse("the compiler's folder stays");
    if (code || library.empty()) return 6;
    uint64_t bytes = library.size();
    program->code = text ? "CANTUSTX" : "CANTUSSO";
    program->code.append((const char *)&bytes, 8);
    program->code += library;
    return OK;
}
API NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(void *program, size_t *bytes) { *bytes = ((Program *)program)->log.size() + 1; return OK; }
API NAME(nvrtcGetProgramLog, hiprtcGetProgramLog)(void *program, char *log) { strcpy(log, ((Program *)program)->log.c_str()); return OK; }
API NAME(nvrtcGetCUBINSize, hiprtcGetCodeSize)(void *program, size_t *bytes) { *bytes = ((Program *)program)->code.size(); return OK; }
API NAME(nvrtcGetCUBIN, hiprtcGetCode)(void *program, char *code) {
    memcpy(code, ((Program *)program)->code.data(), ((Program *)program)->code.size());
    return OK;
}
#ifndef HIP
API nvrtcGetPTXSize(void *program, size_t *bytes) { return nvrtcGetCUBINSize(program, bytes); }
API nvrtcGetPTX(void *program, char *code) { return nvrtcGetCUBIN(program, code); }
static const int architectures_[] = {75, 80, 90, 100};
API nvrtcGetNumSupportedArchs(int *count) { *count = 4; return OK; }
API nvrtcGetSupportedArchs(int *list) { memcpy(list, architectures_, sizeof architectures_); return OK; }
#endif

#endif

// ---- the vendor's libraries

#include "libraries.hpp"

// ---- what a test asks

extern "C" __attribute__((visibility("default"))) long cantus_double_calls(const char *role) { GUARD; return calls_[role]; }
extern "C" __attribute__((visibility("default"))) long cantus_double_live(const char *kind) { GUARD; return live_[kind]; }
extern "C" __attribute__((visibility("default"))) long cantus_double_misuses() { GUARD; return long(misuses_.size()); }
extern "C" __attribute__((visibility("default"))) const char *cantus_double_misuse(long index) { GUARD; return misuses_[size_t(index)].c_str(); }
// The nth call of a role from now on, and all after it, fail with the code; 0 calls it off.
extern "C" __attribute__((visibility("default"))) void cantus_double_fail(const char *role, long nth, int code) {
    GUARD;
    if (nth) failures_[role] = {nth, code};
    else failures_.erase(role);
}
// While it is on, nothing in a stream goes on: a kernel without end.
extern "C" __attribute__((visibility("default"))) void cantus_double_hold(int on) { held_ = on; }
// From now on every event reports the code: what a kernel that faulted leaves behind.
extern "C" __attribute__((visibility("default"))) void cantus_double_stick(int code) {
    std::lock_guard<std::mutex> guard(event_lock_);
    sticky_ = code;
}
