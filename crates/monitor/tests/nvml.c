// A double of NVML: two GPUs, of which the second tells nothing but its name. Layouts and names are those of nvml.h.
#include <string.h>

typedef int nvmlReturn_t;
typedef void *nvmlDevice_t;
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7 };

typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gpu_instance, compute_instance; } nvmlProcessInfo_t;
typedef struct {
    char legacy[16];
    unsigned int domain, bus, device, product, subsystem;
    char id[32];
} nvmlPciInfo_t;

static char gpus[2];
static int tells(nvmlDevice_t gpu) { return gpu == &gpus[0]; }
#define OR_NOTHING(gpu) if (!tells(gpu)) return NOT_SUPPORTED

nvmlReturn_t nvmlInit_v2(void) { return SUCCESS; }
nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { (void)flags; return SUCCESS; }
nvmlReturn_t nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t code) { (void)code; return "an error of the double"; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned int length) { strncpy(text, "580.1", length); return SUCCESS; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *gpu) {
    if (index > 1) return INVALID_ARGUMENT;
    *gpu = &gpus[index];
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t gpu, char *name, unsigned int length) {
    strncpy(name, tells(gpu) ? "Double \033[31mH100" : "Silent", length);
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t gpu, nvmlPciInfo_t *info) {
    OR_NOTHING(gpu);
    memset(info, 0, sizeof *info);
    strcpy(info->legacy, "0000:1B:00.0");
    strcpy(info->id, "00000000:1B:00.0");
    info->bus = 0x1b;
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t gpu, nvmlMemory_v2_t *memory) {
    OR_NOTHING(gpu);
    if (memory->version != (sizeof *memory | 2u << 24)) return INVALID_ARGUMENT;
    *memory = (nvmlMemory_v2_t){ .version = memory->version, .total = 80ull << 30, .free = 78ull << 30, .used = 2ull << 30 };
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t gpu, nvmlUtilization_t *rates) {
    OR_NOTHING(gpu);
    *rates = (nvmlUtilization_t){ .gpu = 37, .memory = 5 };
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t gpu, int sensor, unsigned int *celsius) {
    OR_NOTHING(gpu);
    if (sensor != 0) return INVALID_ARGUMENT;
    *celsius = 61;
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t gpu, unsigned int *milliwatts) {
    OR_NOTHING(gpu);
    *milliwatts = 312500;
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t gpu, int clock, unsigned int *megahertz) {
    OR_NOTHING(gpu);
    if (clock != 1 && clock != 2) return INVALID_ARGUMENT;
    *megahertz = clock == 1 ? 1980 : 2619;
    return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t gpu, unsigned int *count, nvmlProcessInfo_t *list) {
    OR_NOTHING(gpu);
    unsigned int room = *count;
    *count = 2;
    if (room < 2) return INSUFFICIENT_SIZE;
    list[0] = (nvmlProcessInfo_t){ .pid = 4242, .used = 1ull << 30 };
    list[1] = (nvmlProcessInfo_t){ .pid = 4243, .used = ~0ull };
    return SUCCESS;
}
