// A PJRT plugin that stands before another one: it counts calls, and fails those that it is told to.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 73, ERRORS = 64, EVENT_IS_READY = 6, EVENT_AWAIT = 8 };
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

static const struct Api *under;
static struct Api table;
static long calls[COUNT];
static long left[COUNT];
static int codes[COUNT];
// An error of ours is the address of its code.
static int errors[ERRORS];
static int next_error;
static int hanging;
// The function that ends the process; -1 for GetPjrtApi.
static int aborting = -2;

static void end(int place) {
    if (place == aborting) {
        fprintf(stderr, "the double was told to abort\n");
        abort();
    }
}

static int is_ours(void *error) {
    return (int *)error >= errors && (int *)error < errors + ERRORS;
}

static void *called(int place, void *arguments) {
    __atomic_add_fetch(&calls[place], 1, __ATOMIC_SEQ_CST);
    end(place);
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
    return under->functions[place](arguments);
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
    for (int place = 0; place < COUNT; place++) {
        table.functions[place] = behind->functions[place] && place != missing ? own[place] : NULL;
        calls[place] = left[place] = 0;
    }
}

// The call of that number from now on fails with a code.
void double_fail(int place, long number, int code) {
    codes[place] = code;
    left[place] = number;
}

// While it is on, no event passes.
void double_hang(int on) {
    __atomic_store_n(&hanging, on, __ATOMIC_SEQ_CST);
}

void double_abort(int place) {
    aborting = place;
}

long double_calls(int place) {
    return __atomic_load_n(&calls[place], __ATOMIC_SEQ_CST);
}

const struct Api *GetPjrtApi(void) {
    end(-1);
    return under ? &table : NULL;
}
