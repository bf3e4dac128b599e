/* A stand-in for NVIDIA's libnvidia-ml.so.1: the functions that selfhost asks, with the values of a machine that is
 * chosen by the environment variable MACHINE. Signatures and structures are those of nvml.h
 * (https://docs.nvidia.com/deploy/nvml-api/). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { int index; int slice; } device_t;
typedef device_t *handle;
enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, LOST = 15, MISMATCH = 18 };

static device_t cards[2] = {{0, -1}, {1, -1}};
static device_t slices[2] = {{0, 0}, {0, 1}};

static int is(const char *name) {
  const char *asked = getenv("MACHINE");
  return asked && strcmp(asked, name) == 0;
}
static int text(char *to, unsigned room, const char *from) {
  snprintf(to, room, "%s", from);
  return OK;
}

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  if (is("hung")) sleep(600);
  return is("mismatch") ? MISMATCH : is("unloaded") ? DRIVER_NOT_LOADED : OK;
}
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { (void)code; return "said by the library"; }
int nvmlSystemGetDriverVersion(char *to, unsigned room) { return text(to, room, "580.95.05"); }
int nvmlSystemGetNVMLVersion(char *to, unsigned room) { return text(to, room, "13.580.95.05"); }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 13000; return OK; }
int nvmlSystemGetProcessName(unsigned pid, char *to, unsigned room) { (void)pid; return text(to, room, "/usr/bin/python3"); }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = is("pair") || is("lost") ? 2 : is("empty") ? 0 : 1; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *to) {
  if (is("lost") && index == 1) return LOST;
  *to = &cards[index];
  return OK;
}
int nvmlDeviceGetName(handle card, char *to, unsigned room) {
  if (card->slice >= 0) return text(to, room, card->slice ? "NVIDIA H100 MIG 1g.10gb" : "NVIDIA H100 MIG 3g.40gb");
  return text(to, room, is("gb10") ? "NVIDIA GB10" : is("mig") ? "NVIDIA H100 80GB HBM3" : "NVIDIA GeForce RTX 3090");
}
int nvmlDeviceGetUUID(handle card, char *to, unsigned room) {
  snprintf(to, room, card->slice < 0 ? "GPU-0000000%d" : "MIG-0000000%d", card->slice < 0 ? card->index : card->slice);
  return OK;
}
/* minors are the other way round than indices, as it happens */
int nvmlDeviceGetMinorNumber(handle card, unsigned *to) { *to = is("pair") ? 1 - card->index : card->index; return OK; }
struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(handle card, struct pci *to) {
  memset(to, 0, sizeof *to);
  snprintf(to->bus_id, sizeof to->bus_id, is("gb10") ? "0000000F:%02X:00.0" : "00000000:%02X:00.0", card->index + 1);
  to->device_id = is("gb10") ? 0x2E1210DE : is("mig") ? 0x233010DE : 0x220410DE;
  return OK;
}
struct memory { unsigned version; unsigned long long total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(handle card, struct memory *to) {
  if (is("gb10")) return NOT_SUPPORTED;
  to->total = (card->slice < 0 ? 24576ULL : 40448ULL) << 20;
  to->reserved = 0;
  to->used = 512ULL << 20;
  to->free = to->total - to->used;
  return OK;
}
int nvmlDeviceGetCudaComputeCapability(handle card, int *major, int *minor) {
  (void)card;
  *major = is("gb10") ? 12 : is("mig") ? 9 : 8;
  *minor = is("gb10") ? 1 : is("mig") ? 0 : 6;
  return OK;
}
int nvmlDeviceGetVirtualizationMode(handle card, unsigned long long *to) { (void)card; *to = is("mig") ? 1 : 0; return OK; }
struct fabric { unsigned version; unsigned char cluster[16]; int status; unsigned clique; unsigned char state; unsigned health; };
int nvmlDeviceGetGpuFabricInfoV(handle card, struct fabric *to) {
  (void)card;
  if (!is("mig")) return NOT_SUPPORTED;
  to->status = 0;
  to->clique = 7;
  to->state = 3;
  return OK;
}
struct process { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };
int nvmlDeviceGetComputeRunningProcesses_v3(handle card, unsigned *count, struct process *to) {
  if (!is("pair") || card->index) { *count = 0; return OK; }
  if (!to) { *count = 1; return INSUFFICIENT_SIZE; }
  memset(to, 0, sizeof *to);
  to->pid = 4711;
  to->used = 300ULL << 20;
  *count = 1;
  return OK;
}
int nvmlDeviceGetMigMode(handle card, unsigned *current, unsigned *pending) {
  (void)card;
  if (!is("mig")) return NOT_SUPPORTED;
  *current = *pending = 1;
  return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(handle card, unsigned *to) { (void)card; *to = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(handle card, unsigned index, handle *to) {
  (void)card;
  if (index > 1) return NOT_FOUND;
  *to = &slices[index];
  return OK;
}
int nvmlDeviceGetGpuInstanceId(handle card, unsigned *to) { *to = card->slice ? 9 : 2; return OK; }
int nvmlDeviceGetComputeInstanceId(handle card, unsigned *to) { (void)card; *to = 0; return OK; }
int nvmlDeviceGetTopologyCommonAncestor(handle a, handle b, int *to) { (void)a; (void)b; *to = 30; return OK; }
int nvmlDeviceGetP2PStatus(handle a, handle b, int index, int *to) { (void)a; (void)b; (void)index; *to = 2; return OK; }
/* one NVLink bridge of four links between the two cards of `pair` */
int nvmlDeviceGetNvLinkState(handle card, unsigned link, unsigned *to) {
  (void)card;
  if (!is("pair") || link >= 4) return NOT_SUPPORTED;
  *to = 1;
  return OK;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(handle card, unsigned link, unsigned *to) { (void)card; (void)link; *to = 0; return OK; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(handle card, unsigned link, struct pci *to) {
  device_t other = {1 - card->index, -1};
  (void)link;
  return nvmlDeviceGetPciInfo_v3(&other, to);
}
