/* A simulation of NVML (libnvidia-ml.so.1) for hosts without a GPU: it implements the calls that the agent makes, and is
 * controlled by files in the directory that NVML_STUB names:
 *
 *   generation   changed content means another driver: every call fails with "unknown error" until the library is reloaded
 *   lost         GPU-whole has fallen off the bus
 *   xid          an XID that GPU-whole reports once
 *   processes    the PID of a process on GPU-whole
 *   begun        a letter for each initialization of the library
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, LOST = 15, UNKNOWN = 999 };

struct device {
    const char *uuid, *name;
    int parent; /* of a partition; -1 for a whole GPU */
};
typedef struct device *device_t;

static struct device all[] = {
    {"GPU-whole", "NVIDIA H100", -1},
    {"GPU-shared", "NVIDIA GB10", -1},
    {"GPU-parted", "NVIDIA H200", -1},
    {"MIG-part", "NVIDIA H200 MIG 1g.18gb", 2},
};
enum { WHOLE, SHARED, PARTED, PART };
static char generation[16];

/* Reads a file; returns whether it exists. */
static int says(const char *name, char *text, size_t size) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", getenv("NVML_STUB"), name);
    memset(text, 0, size);
    int file = open(path, O_RDONLY);
    if (file < 0) return 0;
    int length = read(file, text, size - 1);
    close(file);
    return length >= 0;
}

static int trouble(device_t device) {
    char now[16];
    says("generation", now, sizeof now);
    if (strcmp(now, generation) != 0) return UNKNOWN;
    return device == &all[WHOLE] && says("lost", now, sizeof now) ? LOST : OK;
}

#define CHECK(device) do { int wrong = trouble(device); if (wrong) return wrong; } while (0)
#define ONLY(device, which) do { CHECK(device); if ((device) != &all[which]) return NOT_SUPPORTED; } while (0)

int nvmlInit_v2(void) {
    char path[512];
    says("generation", generation, sizeof generation);
    snprintf(path, sizeof path, "%s/begun", getenv("NVML_STUB"));
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file >= 0 && write(file, "x", 1) == 1) close(file);
    return OK;
}
int nvmlShutdown(void) { return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "550.54.14"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12040; return OK; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12040; return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device) { *device = &all[index]; return OK; }
int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *device) {
    for (unsigned at = 0; at < sizeof all / sizeof *all; at++) {
        if (strcmp(all[at].uuid, uuid) == 0) {
            *device = &all[at];
            return trouble(*device);
        }
    }
    return NOT_FOUND;
}
int nvmlDeviceGetUUID(device_t device, char *text, unsigned size) { snprintf(text, size, "%s", device->uuid); return OK; }
int nvmlDeviceGetName(device_t device, char *text, unsigned size) { snprintf(text, size, "%s", device->name); return OK; }
int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *count) { *count = device == &all[PARTED] ? 7 : 0; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *part) {
    if (device != &all[PARTED] || index != 2) return NOT_FOUND;
    *part = &all[PART];
    return OK;
}
int nvmlDeviceGetMigMode(device_t device, unsigned *now, unsigned *next) { *now = *next = device == &all[PARTED]; return OK; }

struct memory { unsigned version; unsigned long long total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(device_t device, struct memory *memory) {
    CHECK(device);
    if (device == &all[SHARED]) return NOT_SUPPORTED;
    memory->total = (device == &all[PART] ? 16ULL : 80ULL) << 30;
    memory->used = 3ULL << 29;
    return OK;
}
int nvmlDeviceGetTemperature(device_t device, int sensor, unsigned *degrees) { (void)sensor; CHECK(device); *degrees = 41; return OK; }
struct rates { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(device_t device, struct rates *rates) { ONLY(device, WHOLE); rates->gpu = 97; return OK; }
int nvmlDeviceGetPowerUsage(device_t device, unsigned *milliwatts) { ONLY(device, WHOLE); *milliwatts = 412500; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(device_t device, unsigned *milliwatts) { ONLY(device, WHOLE); *milliwatts = 700000; return OK; }
int nvmlDeviceGetClockInfo(device_t device, int kind, unsigned *mhz) { ONLY(device, WHOLE); *mhz = kind == 1 ? 1980 : 2619; return OK; }
int nvmlDeviceGetTotalEccErrors(device_t device, int kind, int counter, unsigned long long *count) {
    (void)counter;
    ONLY(device, WHOLE);
    *count = kind == 1 ? 2 : 900;
    return OK;
}

struct process { unsigned pid; unsigned long long memory; unsigned instance, compute; };
int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned *count, struct process *processes) {
    char pid[16];
    CHECK(device);
    unsigned found = device == &all[WHOLE] && says("processes", pid, sizeof pid);
    if (found > *count || (found && !processes)) { *count = found; return INSUFFICIENT_SIZE; }
    *count = found;
    if (found) processes[0] = (struct process){atoi(pid), 1 << 20, -1, -1};
    return OK;
}

int nvmlEventSetCreate(void **set) { *set = all; return OK; }
int nvmlEventSetFree(void *set) { (void)set; return OK; }
int nvmlDeviceGetSupportedEventTypes(device_t device, unsigned long long *types) { *types = device == &all[WHOLE] ? 8 : 0; return OK; }
int nvmlDeviceRegisterEvents(device_t device, unsigned long long types, void *set) {
    (void)set;
    return device == &all[WHOLE] && types == 8 ? OK : NOT_SUPPORTED;
}
struct event { device_t device; unsigned long long type, data; unsigned instance, compute; };
int nvmlEventSetWait_v2(void *set, struct event *event, unsigned ms) {
    char xid[16], path[512];
    (void)set;
    for (unsigned waited = 0; waited < ms; waited += 20) {
        if (says("xid", xid, sizeof xid)) {
            snprintf(path, sizeof path, "%s/xid", getenv("NVML_STUB"));
            unlink(path);
            *event = (struct event){&all[WHOLE], 8, strtoull(xid, 0, 10), 0, 0};
            return OK;
        }
        usleep(20000);
    }
    return TIMEOUT;
}
