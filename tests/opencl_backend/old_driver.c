/* A platform of OpenCL 1.1 with one device: what a driver that is too old looks like. */
#include <stddef.h>
#include <string.h>

typedef struct thing *handle;
static int device_, platform_;

static int text(const char *value, size_t size, void *into, size_t *wanted) {
    size_t length = strlen(value) + 1;
    if (wanted) *wanted = length;
    if (into && size >= length) memcpy(into, value, length);
    return 0;
}

int clGetPlatformIDs(unsigned count, handle *platforms, unsigned *total) {
    if (total) *total = 1;
    if (platforms && count) platforms[0] = (handle)&platform_;
    return 0;
}
int clGetPlatformInfo(handle platform, unsigned what, size_t size, void *into, size_t *wanted) {
    (void)platform, (void)what;
    return text("Old platform", size, into, wanted);
}
int clGetDeviceIDs(handle platform, unsigned long kind, unsigned count, handle *devices, unsigned *total) {
    (void)platform, (void)kind;
    if (total) *total = 1;
    if (devices && count) devices[0] = (handle)&device_;
    return 0;
}
int clGetDeviceInfo(handle device, unsigned what, size_t size, void *into, size_t *wanted) {
    (void)device;
    return text(what == 0x102F ? "OpenCL 1.1 old" : "Old card", size, into, wanted);
}
int clRetainDevice(handle device) { (void)device; return 0; }
int clReleaseDevice(handle device) { (void)device; return 0; }
