// Ascend's libraries for tests: the same functions, computed on the processor. Work waits until the stream is waited for or was asked about
// three times. Calls and lives are counted, a call fails when it is told to, and what is used without being alive ends the process.
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

typedef std::vector<int64_t> Ints;
static std::recursive_mutex lock;
static std::map<std::string, long> calls, lives;
static std::map<std::string, std::pair<long, int>> failures;
static std::string message;
#ifndef MAJOR
#define MAJOR 1
#endif
static int32_t version = MAJOR;
static long total;

// Counts a call; what it was told to fail with.
static int called(const char *name) {
    calls[name]++;
    total++;
    auto told = failures.find(name);
    if (told != failures.end() && (told->second.first < 0 || (told->second.first > 0 && --told->second.first == 0))) {
        message = std::string("the double was told to fail ") + name;
        return told->second.second;
    }
    return 0;
}
#define CALL(name) \
    std::lock_guard<std::recursive_mutex> held(lock); \
    if (int code = called(name)) return code
#define MAKE(name) \
    std::lock_guard<std::recursive_mutex> held(lock); \
    if (called(name)) return nullptr

typedef std::function<void()> Work;
struct Model { std::vector<Work> work; };
struct Stream { std::deque<Work> work; int asked = 0; long done = 0, given = 0; Model *captured = nullptr; };
struct Event { Stream *stream; long place; };
struct Tensor { Ints shape; int dtype; void *data; size_t count() const { size_t n = 1; for (auto s : shape) n *= s; return n; } };
struct Scalar { int64_t whole; double real; };
// It refers to its tensors as the caller has them: where they are is looked up at each run.
struct Executor { std::function<Work()> bind; std::vector<const Tensor *> inputs; std::vector<Tensor *> outputs; bool repeatable; };

static std::set<Stream *> streams;
static std::set<Model *> models;
static std::set<const Tensor *> living;
template <class T> static T *alive(const std::set<T *> &all, T *object, const char *what) {
    if (!all.count(object)) { fprintf(stderr, "the double was given a %s that is not alive\n", what); abort(); }
    return object;
}
static bool hangs;
static std::condition_variable_any goes_on;

static void advance(Stream *s) {
    while (!s->work.empty()) { s->work.front()(); s->work.pop_front(); s->done++; }
    s->asked = 0;
}

// Waits until it does not hang; the stream may be gone by then.
static int pass(Stream *s) {
    std::unique_lock<std::recursive_mutex> held(lock);
    goes_on.wait(held, [] { return !hangs; });
    if (streams.count(s)) advance(s);
    return 0;
}

// Puts work into a stream, or into the model that it is captured into.
static void give(Stream *s, Work work) {
    if (s->captured) { s->captured->work.push_back(work); return; }
    s->given++;
    s->work.push_back(work);
}

static bool real(int dtype) { return dtype == 0 || dtype == 1 || dtype == 27; }
static size_t width(int dtype) { return dtype == 9 ? 8 : dtype == 0 || dtype == 3 ? 4 : dtype == 1 || dtype == 27 || dtype == 6 ? 2 : 1; }
template <class T> static T at(const void *data, size_t i) { T x; memcpy(&x, (const char *)data + i * sizeof(T), sizeof(T)); return x; }
template <class T> static void put(void *data, size_t i, T x) { memcpy((char *)data + i * sizeof(T), &x, sizeof(T)); }
static double bf16(uint16_t bits) { uint32_t w = (uint32_t)bits << 16; float f; memcpy(&f, &w, 4); return f; }
static double get_real(const Tensor &t, size_t i) {
    return t.dtype == 0 ? at<float>(t.data, i) : t.dtype == 1 ? (double)at<_Float16>(t.data, i) : bf16(at<uint16_t>(t.data, i));
}
static int64_t get_whole(const Tensor &t, size_t i) {
    switch (t.dtype) {
    case 3: return at<int32_t>(t.data, i);
    case 9: return at<int64_t>(t.data, i);
    case 6: return at<int16_t>(t.data, i);
    case 2: return at<int8_t>(t.data, i);
    default: return at<uint8_t>(t.data, i);
    }
}
static void set_real(const Tensor &t, size_t i, double x) {
    if (t.dtype == 0) return put<float>(t.data, i, (float)x);
    if (t.dtype == 1) return put<_Float16>(t.data, i, (_Float16)x);
    float f = (float)x; uint32_t w; memcpy(&w, &f, 4);
    put<uint16_t>(t.data, i, std::isnan(f) ? 0x7fc0 : (uint16_t)((w + 0x7fff + ((w >> 16) & 1)) >> 16));
}
static void set_whole(const Tensor &t, size_t i, int64_t x) {
    switch (t.dtype) {
    case 3: return put<int32_t>(t.data, i, (int32_t)x);
    case 9: return put<int64_t>(t.data, i, x);
    case 6: return put<int16_t>(t.data, i, (int16_t)x);
    case 12: return put<uint8_t>(t.data, i, x != 0);
    default: return put<uint8_t>(t.data, i, (uint8_t)x);
    }
}
static void move(const Tensor &from, size_t i, const Tensor &to, size_t j) {
    size_t n = width(from.dtype);
    memcpy((char *)to.data + j * n, (const char *)from.data + i * n, n);
}
static void cast(const Tensor &from, size_t i, const Tensor &to, size_t j) {
    if (real(from.dtype)) {
        double x = get_real(from, i);
        if (real(to.dtype)) set_real(to, j, x); else set_whole(to, j, to.dtype == 12 ? x != 0 : (int64_t)x);
    } else if (real(to.dtype)) set_real(to, j, (double)get_whole(from, i));
    else set_whole(to, j, get_whole(from, i));
}
static Ints strides(const Ints &shape) {
    Ints s(shape.size(), 1);
    for (int a = (int)shape.size() - 2; a >= 0; a--) s[a] = s[a + 1] * shape[a + 1];
    return s;
}
// The place in an operand of shape `from` of element i of shape `to`, broadcast from the right.
static size_t spread(const Ints &from, const Ints &to, size_t i) {
    Ints s = strides(from); size_t place = 0; size_t skip = to.size() - from.size();
    for (size_t a = to.size(); a-- > 0; i /= to[a]) if (a >= skip && from[a - skip] != 1) place += (i % to[a]) * s[a - skip];
    return place;
}

// By their types, the operator's tensors are those that it reads and those that it writes.
static void note(Executor *e, const Tensor *t) { if (t) e->inputs.push_back(alive(living, t, "tensor")); }
static void note(Executor *e, Tensor *t) { alive(living, (const Tensor *)t, "tensor"); e->outputs.push_back(t); }
template <class... T> static int first(uint64_t *bytes, void **executor, std::function<Work()> bind, T... tensors) {
    lives["executor"]++;
    *bytes = 64;
    Executor *e = new Executor{bind, {}, {}, false};
    (note(e, tensors), ...);
    *executor = e;
    return 0;
}

extern "C" {
void double_setup(int32_t major) { std::lock_guard<std::recursive_mutex> held(lock); version = major; calls.clear(); failures.clear(); lives.clear(); total = 0; hangs = false; }
// The call of that number from now on fails with a code; all do for -1.
void double_fail(const char *name, long number, int code) { std::lock_guard<std::recursive_mutex> held(lock); failures[name] = {number, code}; }
// While it hangs, no work ends, and whoever waits for it sleeps.
void double_hang(int on) { std::lock_guard<std::recursive_mutex> held(lock); hangs = on; goes_on.notify_all(); }
long double_calls(const char *name) { std::lock_guard<std::recursive_mutex> held(lock); return calls[name]; }
long double_lives(const char *name) { std::lock_guard<std::recursive_mutex> held(lock); return lives[name]; }
// The names that were called, a line each.
const char *double_names() { std::lock_guard<std::recursive_mutex> held(lock); static std::string all; all.clear(); for (auto &c : calls) all += c.first + "\n"; return all.c_str(); }

// Somebody initialised it before.
int aclInit(const char *) { CALL("aclInit"); return 100002; }
int aclrtGetVersion(int32_t *a, int32_t *b, int32_t *c) { CALL("aclrtGetVersion"); *a = version; *b = 15; *c = 0; return 0; }
int aclrtGetDeviceCount(uint32_t *n) { CALL("aclrtGetDeviceCount"); *n = 1; return 0; }
#ifndef WITHOUT_NAME
const char *aclrtGetSocName() { return "Ascend910B4 double"; }
#endif
const char *aclGetRecentErrMsg() { std::lock_guard<std::recursive_mutex> held(lock); static std::string last; last = message; message.clear(); return last.c_str(); }
int aclrtCreateContext(void **c, int32_t) { CALL("aclrtCreateContext"); lives["context"]++; *c = new int; return 0; }
int aclrtDestroyContext(void *c) { CALL("aclrtDestroyContext"); lives["context"]--; delete (int *)c; return 0; }
int aclrtSetCurrentContext(void *) { CALL("aclrtSetCurrentContext"); return 0; }
int aclrtGetMemInfo(int, size_t *f, size_t *t) { CALL("aclrtGetMemInfo"); *f = *t = 1ull << 35; return 0; }
int aclrtMalloc(void **p, size_t n, int) { CALL("aclrtMalloc"); lives["memory"]++; *p = malloc(n); memset(*p, 0xa5, n); return 0; }
int aclrtFree(void *p) { CALL("aclrtFree"); lives["memory"]--; free(p); return 0; }
int aclrtMallocHost(void **p, size_t n) { CALL("aclrtMallocHost"); lives["host"]++; *p = malloc(n); return 0; }
int aclrtFreeHost(void *p) { CALL("aclrtFreeHost"); lives["host"]--; free(p); return 0; }
int aclrtCreateStream(void **s) { CALL("aclrtCreateStream"); lives["stream"]++; Stream *made = new Stream; streams.insert(made); *s = made; return 0; }
int aclrtDestroyStream(void *s) { CALL("aclrtDestroyStream"); lives["stream"]--; streams.erase(alive(streams, (Stream *)s, "stream")); delete ((Stream *)s)->captured; delete (Stream *)s; return 0; }
int aclrtSynchronizeStream(void *s) { { CALL("aclrtSynchronizeStream"); } return pass((Stream *)s); }
int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t n, int, void *s) {
    CALL("aclrtMemcpyAsync");
    if (n > room) return 107000;
    give(alive(streams, (Stream *)s, "stream"), [=] { memcpy(to, from, n); });
    return 0;
}
int aclrtCreateEvent(void **e) { CALL("aclrtCreateEvent"); lives["event"]++; *e = new Event{nullptr, 0}; return 0; }
int aclrtDestroyEvent(void *e) { CALL("aclrtDestroyEvent"); lives["event"]--; delete (Event *)e; return 0; }
int aclrtRecordEvent(void *e, void *s) { CALL("aclrtRecordEvent"); *(Event *)e = {(Stream *)s, ((Stream *)s)->given}; return 0; }
int aclrtQueryEventStatus(void *e, int32_t *status) {
    CALL("aclrtQueryEventStatus");
    Stream *s = ((Event *)e)->stream;
    if (!hangs && ++s->asked >= 3) advance(s);
    *status = s->done >= ((Event *)e)->place;
    return 0;
}
int aclrtSynchronizeEvent(void *e) {
    Stream *s;
    { CALL("aclrtSynchronizeEvent"); s = ((Event *)e)->stream; }
    return pass(s);
}
void *aclCreateTensor(const int64_t *dims, uint64_t n, int dtype, const int64_t *, int64_t, int, const int64_t *, uint64_t, void *data) {
    MAKE("aclCreateTensor"); lives["tensor"]++;
    return (void *)*living.insert(new Tensor{Ints(dims, dims + n), dtype, data}).first;
}
int aclDestroyTensor(void *t) { CALL("aclDestroyTensor"); lives["tensor"]--; living.erase(alive(living, (const Tensor *)t, "tensor")); delete (Tensor *)t; return 0; }
void *aclCreateScalar(void *value, int dtype) {
    MAKE("aclCreateScalar"); lives["scalar"]++;
    Tensor t{{}, dtype, value};
    double r = real(dtype) ? get_real(t, 0) : (double)get_whole(t, 0);
    return new Scalar{real(dtype) ? (int64_t)r : get_whole(t, 0), r};
}
int aclDestroyScalar(void *s) { CALL("aclDestroyScalar"); lives["scalar"]--; delete (Scalar *)s; return 0; }
void *aclCreateIntArray(const int64_t *v, uint64_t n) { MAKE("aclCreateIntArray"); lives["ints"]++; return new Ints(v, v + n); }
int aclDestroyIntArray(void *a) { CALL("aclDestroyIntArray"); lives["ints"]--; delete (Ints *)a; return 0; }
int aclSetAclOpExecutorRepeatable(void *e) { CALL("aclSetAclOpExecutorRepeatable"); ((Executor *)e)->repeatable = true; return 0; }
int aclDestroyAclOpExecutor(void *e) { CALL("aclDestroyAclOpExecutor"); lives["executor"]--; delete (Executor *)e; return 0; }

#ifndef WITHOUT_ADDRESSES
int aclSetInputTensorAddr(void *e, size_t place, void *t, void *address) {
    CALL("aclSetInputTensorAddr");
    Executor *x = (Executor *)e;
    if (!x->repeatable || place >= x->inputs.size() || x->inputs[place] != t) return 161002;
    ((Tensor *)t)->data = address;
    return 0;
}
int aclSetOutputTensorAddr(void *e, size_t place, void *t, void *address) {
    CALL("aclSetOutputTensorAddr");
    Executor *x = (Executor *)e;
    if (!x->repeatable || place >= x->outputs.size() || x->outputs[place] != t) return 161002;
    ((Tensor *)t)->data = address;
    return 0;
}
#endif
#ifndef WITHOUT_CAPTURES
int aclmdlRICaptureBegin(void *s, int mode) {
    CALL("aclmdlRICaptureBegin");
    if (mode != 1) return 107000;
    alive(streams, (Stream *)s, "stream")->captured = new Model;
    return 0;
}
int aclmdlRICaptureEnd(void *s, void **m) {
    CALL("aclmdlRICaptureEnd");
    Model *made = alive(streams, (Stream *)s, "stream")->captured;
    if (!made) return 107000;
    ((Stream *)s)->captured = nullptr;
    lives["model"]++;
    models.insert(made);
    *m = made;
    return 0;
}
int aclmdlRIExecuteAsync(void *m, void *s) {
    CALL("aclmdlRIExecuteAsync");
    Model *model = alive(models, (Model *)m, "model");
    give(alive(streams, (Stream *)s, "stream"), [=] { for (auto &work : alive(models, model, "model")->work) work(); });
    return 0;
}
int aclmdlRIDestroy(void *m) { CALL("aclmdlRIDestroy"); lives["model"]--; models.erase(alive(models, (Model *)m, "model")); delete (Model *)m; return 0; }
#endif

static int second(void *workspace, uint64_t bytes, void *executor, void *stream, const char *name) {
    std::lock_guard<std::recursive_mutex> held(lock);
    int code = called(name);
    Executor *e = (Executor *)executor;
    if (!code) {
        for (auto t : e->inputs) alive(living, t, "tensor");
        for (auto t : e->outputs) alive(living, (const Tensor *)t, "tensor");
        Work work = e->bind();
        give(alive(streams, (Stream *)stream, "stream"), [=] { memset(workspace, 0x5a, bytes); work(); });
    }
    if (!e->repeatable) { lives["executor"]--; delete e; }
    return code;
}
#define OPERATOR(name, parameters, names, ...) \
    int aclnn##name(void *w, uint64_t n, void *e, void *s) { return second(w, n, e, s, "aclnn" #name); } \
    int aclnn##name##GetWorkspaceSize parameters { CALL("aclnn" #name "GetWorkspaceSize"); \
        return first(bytes, executor, [=]() -> Work { return __VA_ARGS__; }, NAMES names); }
#define NAMES(...) __VA_ARGS__
#define TAIL uint64_t *bytes, void **executor
#define COPY(t) t = *t##_

#define UNARY(name, F, W) OPERATOR(name, (const Tensor *x_, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(o)] { \
    for (size_t i = 0; i < o.count(); i++) if (real(x.dtype)) { double a = get_real(x, i); (void)a; set_real(o, i, F); } \
    else { int64_t a = get_whole(x, i); (void)a; set_whole(o, i, W); } })
UNARY(Exp, exp(a), 0) UNARY(Log, log(a), 0) UNARY(Sqrt, sqrt(a), 0) UNARY(Rsqrt, 1 / sqrt(a), 0) UNARY(Tanh, tanh(a), 0)
UNARY(Abs, fabs(a), a < 0 ? -a : a) UNARY(Neg, -a, -a) UNARY(Floor, floor(a), a) UNARY(Ceil, ceil(a), a) UNARY(Round, nearbyint(a), a)
UNARY(Sin, sin(a), 0) UNARY(Cos, cos(a), 0) UNARY(BitwiseNot, 0, ~a) UNARY(LogicalNot, 0, !a)

#define PAIR(F, W) { for (size_t i = 0; i < o.count(); i++) { size_t p = spread(x.shape, o.shape, i), q = spread(y.shape, o.shape, i); \
    if (real(x.dtype)) { double a = get_real(x, p), b = get_real(y, q); (void)a, (void)b; auto r = (F); if (real(o.dtype)) set_real(o, i, r); else set_whole(o, i, r); } \
    else { int64_t a = get_whole(x, p), b = get_whole(y, q); (void)a, (void)b; set_whole(o, i, W); } } }
#define BINARY(name, F, W) OPERATOR(name, (const Tensor *x_, const Tensor *y_, Tensor *o_, TAIL), (x_, y_, o_), [COPY(x), COPY(y), COPY(o)] PAIR(F, W))
BINARY(Mul, a * b, (int64_t)((uint64_t)a * (uint64_t)b)) BINARY(Div, a / b, 0) BINARY(FmodTensor, fmod(a, b), b ? a % b : 0)
BINARY(Maximum, std::max(a, b), std::max(a, b)) BINARY(Minimum, std::min(a, b), std::min(a, b))
BINARY(PowTensorTensor, pow(a, b), 0) BINARY(Atan2, atan2(a, b), 0)
BINARY(BitwiseAndTensor, 0, a & b) BINARY(BitwiseOrTensor, 0, a | b) BINARY(BitwiseXorTensor, 0, a ^ b)
BINARY(LogicalAnd, 0, a && b) BINARY(LogicalOr, 0, a || b)
BINARY(EqTensor, a == b, a == b) BINARY(NeTensor, a != b, a != b) BINARY(LtTensor, a < b, a < b)
BINARY(LeTensor, a <= b, a <= b) BINARY(GtTensor, a > b, a > b) BINARY(GeTensor, a >= b, a >= b)
#define SCALED(name, sign) OPERATOR(name, (const Tensor *x_, const Tensor *y_, const Scalar *k_, Tensor *o_, TAIL), (x_, y_, o_), \
    [COPY(x), COPY(y), COPY(k), COPY(o)] PAIR(a sign k.real * b, (int64_t)((uint64_t)a sign (uint64_t)k.whole * (uint64_t)b)))
SCALED(Add, +) SCALED(Sub, -)
OPERATOR(DivMod, (const Tensor *x_, const Tensor *y_, int mode, Tensor *o_, TAIL), (x_, y_, o_), [COPY(x), COPY(y), COPY(o), mode] PAIR(trunc(a / b), b && mode == 1 ? a / b : 0))
OPERATOR(SWhere, (const Tensor *c_, const Tensor *x_, const Tensor *y_, Tensor *o_, TAIL), (c_, x_, y_, o_), [COPY(c), COPY(x), COPY(y), COPY(o)] {
    for (size_t i = 0; i < o.count(); i++) {
        if (get_whole(c, spread(c.shape, o.shape, i))) move(x, spread(x.shape, o.shape, i), o, i); else move(y, spread(y.shape, o.shape, i), o, i);
    } })
OPERATOR(Cast, (const Tensor *x_, int, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(o)] { for (size_t i = 0; i < o.count(); i++) cast(x, i, o, i); })
OPERATOR(Expand, (const Tensor *x_, const Ints *, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(o)] { for (size_t i = 0; i < o.count(); i++) move(x, spread(x.shape, o.shape, i), o, i); })
OPERATOR(Permute, (const Tensor *x_, const Ints *d_, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(d), COPY(o)] {
    Ints s = strides(x.shape);
    for (size_t i = 0; i < o.count(); i++) {
        size_t rest = i, place = 0;
        for (size_t a = d.size(); a-- > 0; rest /= o.shape[a]) place += (rest % o.shape[a]) * s[d[a]];
        move(x, place, o, i);
    } })
OPERATOR(SliceV2, (const Tensor *x_, const Ints *b_, const Ints *, const Ints *, const Ints *k_, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(b), COPY(k), COPY(o)] {
    Ints s = strides(x.shape);
    for (size_t i = 0; i < o.count(); i++) {
        size_t rest = i, place = 0;
        for (size_t a = b.size(); a-- > 0; rest /= o.shape[a]) place += (b[a] + (rest % o.shape[a]) * k[a]) * s[a];
        move(x, place, o, i);
    } })
OPERATOR(ConstantPadNd, (const Tensor *x_, const Ints *d_, const Scalar *v_, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(d), COPY(v), COPY(o)] {
    Ints s = strides(o.shape);
    for (size_t i = 0; i < o.count(); i++) if (real(o.dtype)) set_real(o, i, v.real); else set_whole(o, i, v.whole);
    for (size_t i = 0; i < x.count(); i++) {
        size_t rest = i, place = 0;
        for (size_t a = x.shape.size(); a-- > 0; rest /= x.shape[a]) place += (rest % x.shape[a] + d[2 * (x.shape.size() - 1 - a)]) * s[a];
        move(x, i, o, place);
    } })
OPERATOR(IndexSelect, (const Tensor *x_, int64_t, const Tensor *p_, Tensor *o_, TAIL), (x_, p_, o_), [COPY(x), COPY(p), COPY(o)] { for (size_t i = 0; i < o.count(); i++) move(x, get_whole(p, i), o, i); })
OPERATOR(Arange, (const Scalar *b_, const Scalar *, const Scalar *k_, Tensor *o_, TAIL), (o_), [COPY(b), COPY(k), COPY(o)] {
    for (size_t i = 0; i < o.count(); i++) if (real(o.dtype)) set_real(o, i, b.real + i * k.real); else set_whole(o, i, b.whole + i * k.whole); })
OPERATOR(InplaceFillScalar, (Tensor *o_, const Scalar *v_, TAIL), (o_), [COPY(o), COPY(v)] {
    for (size_t i = 0; i < o.count(); i++) if (real(o.dtype)) set_real(o, i, v.real); else set_whole(o, i, v.whole); })

static void folded(const Tensor &x, const Ints &axes, const Tensor &o, double start, std::function<double(double, double)> f, std::function<int64_t(int64_t, int64_t)> g) {
    std::vector<double> r(o.count(), start); std::vector<int64_t> w(o.count(), (int64_t)start); std::vector<bool> seen(o.count());
    for (size_t i = 0; i < x.count(); i++) {
        size_t rest = i, place = 0, stride = 1;
        for (size_t a = x.shape.size(); a-- > 0; rest /= x.shape[a]) {
            if (std::find(axes.begin(), axes.end(), (int64_t)a) != axes.end()) continue;
            place += (rest % x.shape[a]) * stride; stride *= x.shape[a];
        }
        bool begun = seen[place]; seen[place] = true;
        if (real(x.dtype)) { double a = get_real(x, i); r[place] = begun ? f(r[place], a) : a; }
        else { int64_t a = get_whole(x, i); w[place] = begun ? g(w[place], a) : a; }
    }
    for (size_t i = 0; i < o.count(); i++) if (real(o.dtype)) set_real(o, i, r[i]); else set_whole(o, i, w[i]);
}
#define FOLD(F) [](auto a, auto b) { return F; }
OPERATOR(ReduceSum, (const Tensor *x_, const Ints *d_, bool, int, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(d), COPY(o)] { folded(x, d, o, 0, FOLD(a + b), FOLD(a + b)); })
OPERATOR(Amax, (const Tensor *x_, const Ints *d_, bool, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(d), COPY(o)] { folded(x, d, o, 0, FOLD(std::isnan(a) || a > b ? a : b), FOLD(std::max(a, b))); })
OPERATOR(Amin, (const Tensor *x_, const Ints *d_, bool, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(d), COPY(o)] { folded(x, d, o, 0, FOLD(std::isnan(a) || a < b ? a : b), FOLD(std::min(a, b))); })
OPERATOR(ProdDim, (const Tensor *x_, int64_t axis, bool, int, Tensor *o_, TAIL), (x_, o_), [COPY(x), COPY(o), axis] { folded(x, {axis}, o, 1, FOLD(a * b), FOLD(a * b)); })

static void product(const Tensor &a, const Tensor &b, const Tensor &o) {
    size_t r = o.shape.size(), m = o.shape[r - 2], n = o.shape[r - 1], k = a.shape[r - 1], batches = r == 3 ? o.shape[0] : 1;
    for (size_t t = 0; t < batches; t++) for (size_t i = 0; i < m; i++) for (size_t j = 0; j < n; j++) {
        double sum = 0;
        for (size_t l = 0; l < k; l++) sum += get_real(a, (t * m + i) * k + l) * get_real(b, (t * k + l) * n + j);
        set_real(o, (t * m + i) * n + j, sum);
    }
}
OPERATOR(Matmul, (const Tensor *x_, const Tensor *y_, Tensor *o_, int8_t kind, TAIL), (x_, y_, o_), [COPY(x), COPY(y), COPY(o), kind] { if (kind == 0) product(x, y, o); })
OPERATOR(BatchMatMul, (const Tensor *x_, const Tensor *y_, Tensor *o_, int8_t kind, TAIL), (x_, y_, o_), [COPY(x), COPY(y), COPY(o), kind] { if (kind == 0) product(x, y, o); })
#ifndef WITHOUT_CONVOLUTION
OPERATOR(Convolution, (const Tensor *x_, const Tensor *w_, const Tensor *, const Ints *s_, const Ints *p_, const Ints *d_, bool, const Ints *, int64_t groups, Tensor *o_, int8_t, TAIL), (x_, w_, o_),
    [COPY(x), COPY(w), COPY(s), COPY(p), COPY(d), COPY(o), groups] {
    auto &X = x.shape, &W = w.shape, &O = o.shape;
    size_t place = 0;
    for (int64_t n = 0; n < O[0]; n++) for (int64_t c = 0; c < O[1]; c++) for (int64_t i = 0; i < O[2]; i++) for (int64_t j = 0; j < O[3]; j++) {
        double sum = 0; int64_t base = c / (O[1] / groups) * W[1];
        for (int64_t k = 0; k < W[1]; k++) for (int64_t u = 0; u < W[2]; u++) for (int64_t v = 0; v < W[3]; v++) {
            int64_t y = i * s[0] + u * d[0] - p[0], z = j * s[1] + v * d[1] - p[1];
            if (y < 0 || y >= X[2] || z < 0 || z >= X[3]) continue;
            sum += get_real(x, ((n * X[1] + base + k) * X[2] + y) * X[3] + z) * get_real(w, ((c * W[1] + k) * W[2] + u) * W[3] + v);
        }
        set_real(o, place++, sum);
    } })
#endif
}
