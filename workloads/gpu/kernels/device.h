// A device as one task sees it: its memory, copies, and clock.
#pragma once

#include "platform.h"

#if HG_CUDA
#include <dlfcn.h>
#else
#include <omp.h>
#endif

namespace hg {

enum Buffer { INPUT, OUTPUT, SMALL, SCRATCH, BUFFERS };

struct Device {
  bool is_cuda = HG_CUDA;
  char name[256] = "";
  int threads = 1;      // of the processor build
  int64_t limit = 0;    // most bytes of device memory that this task takes; 0: no limit
  int64_t taken = 0;
  double alloc_ns = 0;  // spent on memory, on the device and pinned
  void* memory[BUFFERS] = {};
  int64_t size[BUFFERS] = {};
#if HG_CUDA
  int shared_bytes = 48 * 1024;
  int processors = 1;
  cudaStream_t stream = nullptr;
  cudaEvent_t mark[2] = {};
#else
  double mark[2] = {};
#endif
};

#if HG_CUDA

inline int check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return 0;
  cudaGetLastError();  // the next call starts clean
  return fail(int(code), "%s: %s (CUDA error %d)", what, cudaGetErrorString(code), int(code));
}

__global__ void warm_up(int* nothing) {
  if (nothing) *nothing = 0;
}

// CUDA gives the same code where no driver is there and where it is too old: a look at its library tells them apart.
inline int count(int* devices) {
  const int code = check(cudaGetDeviceCount(devices), "looking for devices");
  if (code != 35) return code;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (!driver) return fail(code, "there is no driver: libcuda.so.1 is not found (CUDA error %d)", code);
  dlclose(driver);
  return fail(code, "the driver is too old for CUDA %d.%d (CUDA error %d)", CUDART_VERSION / 1000,
              CUDART_VERSION % 1000 / 10, code);
}

inline int start(Device& d, int ordinal) {
  HG_TRY(check(cudaSetDevice(ordinal), "choosing the device"));
  cudaDeviceProp p;
  HG_TRY(check(cudaGetDeviceProperties(&p, ordinal), "asking for the device's properties"));
  std::snprintf(d.name, sizeof d.name, "%s", p.name);
  d.shared_bytes = int(std::max(p.sharedMemPerBlock, p.sharedMemPerBlockOptin));
  d.processors = p.multiProcessorCount;
  HG_TRY(check(cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking), "making a stream"));
  for (auto& m : d.mark) HG_TRY(check(cudaEventCreate(&m), "making an event"));
  HG_LAUNCH(warm_up, 1, 1, 0, d.stream, nullptr);
  HG_TRY(check(cudaGetLastError(), "launching the first kernel"));
  return check(cudaStreamSynchronize(d.stream), "running the first kernel");
}

inline int raw_alloc(void** at, int64_t bytes) { return check(cudaMalloc(at, size_t(bytes)), "device memory"); }
inline void raw_free(void* at) { cudaFree(at); }

inline int host_alloc(void** at, int64_t bytes, bool pinned) {
  if (pinned) return check(cudaHostAlloc(at, size_t(bytes), cudaHostAllocDefault), "pinned memory");
  *at = std::aligned_alloc(4096, size_t((bytes + 4095) / 4096 * 4096));
  return *at ? 0 : fail(OUT_OF_MEMORY, "%lld bytes of host memory: out of memory", (long long)bytes);
}

inline void host_free(void* at, bool pinned) {
  if (pinned) cudaFreeHost(at);
  else std::free(at);
}

inline int to_device(Device& d, void* to, const void* from, int64_t bytes) {
  return check(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyHostToDevice, d.stream), "copy to the device");
}

inline int to_host(Device& d, void* to, const void* from, int64_t bytes) {
  return check(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToHost, d.stream), "copy to the host");
}

inline int zero(Device& d, void* at, int64_t bytes) {
  return check(cudaMemsetAsync(at, 0, size_t(bytes), d.stream), "clearing device memory");
}

inline int mark(Device& d, int which) { return check(cudaEventRecord(d.mark[which], d.stream), "marking a time"); }

inline int launched() { return check(cudaGetLastError(), "launching a kernel"); }

// Waits, and answers the time between the two marks.  Results may be read after it, not before.
inline int elapsed(Device& d, double* ns) {
  HG_TRY(check(cudaStreamSynchronize(d.stream), "waiting for the device"));
  float ms = 0;
  HG_TRY(check(cudaEventElapsedTime(&ms, d.mark[0], d.mark[1]), "reading a time"));
  *ns = double(ms) * 1e6;
  return 0;
}

inline void stop(Device& d) {
  for (auto& m : d.mark)
    if (m) cudaEventDestroy(m);
  if (d.stream) cudaStreamDestroy(d.stream);
}

#else  // the processor: "device" memory is memory of its own, so that the copies are copies here, too

inline int count(int* devices) {
  *devices = 1;
  return 0;
}

inline void processor_name(char* name, size_t size) {
  std::snprintf(name, size, "processor");
  FILE* f = std::fopen("/proc/cpuinfo", "r");
  if (!f) return;
  char line[512];
  while (std::fgets(line, sizeof line, f)) {
    char* colon = std::strchr(line, ':');
    if (colon && std::strncmp(line, "model name", 10) == 0) {
      line[std::strcspn(line, "\n")] = 0;
      std::snprintf(name, size, "%s", colon[1] == ' ' ? colon + 2 : colon + 1);
      break;
    }
  }
  std::fclose(f);
}

inline int start(Device& d, int) {
  processor_name(d.name, sizeof d.name);
  return 0;
}

inline int host_alloc(void** at, int64_t bytes, bool) {
  *at = std::aligned_alloc(4096, size_t((bytes + 4095) / 4096 * 4096));
  return *at ? 0 : fail(OUT_OF_MEMORY, "%lld bytes of host memory: out of memory", (long long)bytes);
}

inline void host_free(void* at, bool) { std::free(at); }
inline int raw_alloc(void** at, int64_t bytes) { return host_alloc(at, bytes, false); }
inline void raw_free(void* at) { std::free(at); }

inline int to_device(Device&, void* to, const void* from, int64_t bytes) {
  std::memcpy(to, from, size_t(bytes));
  return 0;
}

inline int to_host(Device& d, void* to, const void* from, int64_t bytes) { return to_device(d, to, from, bytes); }

inline int zero(Device&, void* at, int64_t bytes) {
  std::memset(at, 0, size_t(bytes));
  return 0;
}

inline int mark(Device& d, int which) {
  d.mark[which] = now_ns();
  return 0;
}

inline int launched() { return 0; }

inline int elapsed(Device& d, double* ns) {
  *ns = d.mark[1] - d.mark[0];
  return 0;
}

inline void stop(Device&) {}

#endif

// Device memory of at least *bytes* in one of the buffers; kept for the next block.  Its time is counted apart.
inline int reserve(Device& d, Buffer which, int64_t bytes) {
  if (bytes <= d.size[which]) return 0;
  double began = now_ns();
  d.taken -= d.size[which];
  if (d.memory[which]) raw_free(d.memory[which]);
  d.memory[which] = nullptr;
  d.size[which] = 0;
  if (d.limit > 0 && d.taken + bytes > d.limit)
    return fail(OUT_OF_MEMORY, "%lld bytes of device memory: out of memory, %lld of %lld are taken", (long long)bytes,
                (long long)d.taken, (long long)d.limit);
  HG_TRY(raw_alloc(&d.memory[which], bytes));
  d.size[which] = bytes;
  d.taken += bytes;
  d.alloc_ns += now_ns() - began;
  return 0;
}

template <class T>
T* at(Device& d, Buffer which) {
  return static_cast<T*>(d.memory[which]);
}

// The first of a block's three steps: its bytes to the device.
inline int upload(Device& d, const void* block, int64_t bytes, double* ns) {
  HG_TRY(reserve(d, INPUT, bytes));
  HG_TRY(mark(d, 0));
  HG_TRY(to_device(d, d.memory[INPUT], block, bytes));
  HG_TRY(mark(d, 1));
  return elapsed(d, ns);
}

// The last: the results to the host.
inline int download(Device& d, void* results, int64_t bytes, double* ns) {
  if (bytes > d.size[OUTPUT])
    return fail(BAD_ARGUMENT, "%lld bytes of results, where there are %lld", (long long)bytes, (long long)d.size[OUTPUT]);
  HG_TRY(mark(d, 0));
  HG_TRY(to_host(d, results, d.memory[OUTPUT], bytes));
  HG_TRY(mark(d, 1));
  return elapsed(d, ns);
}

// Whether the uploaded block has the bytes that a kernel is about to read.
inline int expect(const Device& d, int64_t bytes) {
  if (bytes <= d.size[INPUT]) return 0;
  return fail(BAD_ARGUMENT, "a kernel for %lld bytes, where %lld are", (long long)bytes, (long long)d.size[INPUT]);
}

}  // namespace hg
