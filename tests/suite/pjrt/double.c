// A PJRT plugin that stands before another one: it counts calls, and fails those that it is told to.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 73, ERRORS = 64, EVENT_IS_READY = 6, EVENT_AWAIT = 8, CLIENT_CREATE = 10, CLIENT_DESTROY = 11, COMPILE = 20, EXECUTE = 55 };
typedef void *(*Function)(void *);

struct Api {
    size_t size;
    void *extension;
    size_t version_size;
    void *version_extension;
    int major, minor;
    Function functions[COUNT];
};

struct Text {
    size_t size;
    void *extension;
    void *object;
    const char *text;
    size_t length;
};

struct Number {
    size_t size;
    void *extension;
    void *object;
    int number;
};

struct Program {
    size_t size;
    void *extension;
    const char *text;
    size_t length;
};

struct Compile {
    size_t size;
    void *extension;
    void *client;
    const struct Program *program;
    const char *options;
    size_t options_length;
    void *executable;
};

static const struct Api *under;
static struct Api table;
static long calls[COUNT];
static long left[COUNT];
static int codes[COUNT];
// An error of ours is the address of its code.
static int errors[ERRORS];
static int next_error;
static int hanging;
// Those that live.
static long clients;

// What is known of the latest executables.
static struct {
    void *object;
    int gives;
    int fatal;
} executables[ERRORS];
static int next_executable;
// Executions whose result took an input's memory.
static long donations;
// The function that ends the process; -1 for GetPjrtApi.
static int aborting = -2;
// Only programs with that word do; all for an empty one.
static char word[64];

static int contains(const struct Program *program, const char *text) {
    return memmem(program->text, program->length, text, strlen(text)) != NULL;
}

static void end(void) {
    fprintf(stderr, "the double was told to abort\n");
    abort();
}

static void *compiled(struct Compile *arguments) {
    int fatal = word[0] && contains(arguments->program, word);
    if (fatal && aborting == COMPILE) {
        end();
    }
    void *error = under->functions[COMPILE](arguments);
    for (int i = 0; i < ERRORS; i++) {
        if (executables[i].object == arguments->executable) {
            executables[i].object = NULL;
        }
    }
    if (!error) {
        int place = next_executable++ % ERRORS;
        executables[place].object = arguments->executable;
        executables[place].gives = contains(arguments->program, "tf.aliasing_output");
        executables[place].fatal = fatal;
    }
    return error;
}

static void *executed(struct Number *arguments) {
    for (int i = 0; i < ERRORS; i++) {
        if (executables[i].object == arguments->object && executables[i].fatal && aborting == EXECUTE) {
            end();
        }
    }
    void *executable = arguments->object;
    void *error = under->functions[EXECUTE](arguments);
    for (int i = 0; !error && i < ERRORS; i++) {
        donations += executables[i].object == executable && executables[i].gives;
    }
    return error;
}

static int is_ours(void *error) {
    return (int *)error >= errors && (int *)error < errors + ERRORS;
}

static void *called(int place, void *arguments) {
    __atomic_add_fetch(&calls[place], 1, __ATOMIC_SEQ_CST);
    if (place == aborting && !word[0]) {
        end();
    }
    if (left[place] > 0 && --left[place] == 0) {
        int *error = &errors[next_error++ % ERRORS];
        *error = codes[place];
        return error;
    }
    if (place < 3 && is_ours(((struct Text *)arguments)->object)) {
        struct Text *text = arguments;
        if (place == 1) {
            text->text = "the double was told to fail";
            text->length = strlen(text->text);
        } else if (place == 2) {
            ((struct Number *)arguments)->number = *(int *)text->object;
        }
        return NULL;
    }
    if (place == EVENT_IS_READY && __atomic_load_n(&hanging, __ATOMIC_SEQ_CST)) {
        ((struct Number *)arguments)->number = 0;
        return NULL;
    }
    while (place == EVENT_AWAIT && __atomic_load_n(&hanging, __ATOMIC_SEQ_CST)) {
        usleep(1000);
    }
    switch (place) {
    case COMPILE: return compiled(arguments);
    case EXECUTE: return executed(arguments);
    default: break;
    }
    void *error = under->functions[place](arguments);
    if (!error && (place == CLIENT_CREATE || place == CLIENT_DESTROY)) {
        __atomic_add_fetch(&clients, place == CLIENT_CREATE ? 1 : -1, __ATOMIC_SEQ_CST);
    }
    return error;
}

#define ONE(n) static void *call_##n(void *arguments) { return called(n, arguments); }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
ONE(0) ONE(1) ONE(2) ONE(3) ONE(4) ONE(5) ONE(6) ONE(7) ONE(8) ONE(9)
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) ONE(70) ONE(71) ONE(72)
#define NAMES(n) call_##n##0, call_##n##1, call_##n##2, call_##n##3, call_##n##4, call_##n##5, call_##n##6, call_##n##7, call_##n##8, call_##n##9
static const Function own[COUNT] = {
    call_0, call_1, call_2, call_3, call_4, call_5, call_6, call_7, call_8, call_9,
    NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6), call_70, call_71, call_72,
};

// What is behind it, the version that it says, a function that is missing (none for -1), and bytes that its table lacks.
void double_setup(const struct Api *behind, int major, int missing, size_t shorter) {
    under = behind;
    table = *behind;
    table.major = major;
    table.size -= shorter;
    hanging = 0;
    donations = 0;
    memset(executables, 0, sizeof executables);
    for (int place = 0; place < COUNT; place++) {
        table.functions[place] = behind->functions[place] && place != missing ? own[place] : NULL;
        calls[place] = left[place] = 0;
    }
}

#ifdef BEHIND
// Before a plugin in a library, where nobody calls the double's own functions: in a program that is tested from outside.
__attribute__((constructor)) static void begin(void) {
    void *library = dlopen(BEHIND, RTLD_NOW | RTLD_LOCAL);
    const struct Api *(*get)(void) = NULL;
    if (library) {
        *(void **)&get = dlsym(library, "GetPjrtApi");
    }
    if (get) {
        double_setup(get(), MAJOR, MISSING, SHORTER);
    }
}
#endif

// The call of that number from now on fails with a code.
void double_fail(int place, long number, int code) {
    codes[place] = code;
    left[place] = number;
}

// While it is on, no event passes.
void double_hang(int on) {
    __atomic_store_n(&hanging, on, __ATOMIC_SEQ_CST);
}

// The function of that place ends the process; of compiling and executing, for programs with that word.
void double_abort(int place, const char *of) {
    aborting = place;
    snprintf(word, sizeof word, "%s", of);
}

long double_calls(int place) {
    return __atomic_load_n(&calls[place], __ATOMIC_SEQ_CST);
}

long double_clients(void) {
    return __atomic_load_n(&clients, __ATOMIC_SEQ_CST);
}

long double_donations(void) {
    return donations;
}

const struct Api *GetPjrtApi(void) {
    if (aborting == -1) {
        end();
    }
    return under ? &table : NULL;
}
