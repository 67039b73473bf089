// CUDA's words on a processor, so that tests run the bodies of the kernels that are written for devices.
//
// Blocks run one after the other, the threads of a block at the same time, as threads of this process.  Shared memory
// is static memory.  It shows what a kernel computes; it shows nothing of its speed, and not every race.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#define CUDART_VERSION 13000
#define __global__
#define __device__
#define __launch_bounds__(threads)
#define __shared__ static
#define HG_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(emulation::shared.data())

struct Index {
  int x = 0;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace emulation {
inline std::vector<std::max_align_t> shared;
inline std::unique_ptr<std::barrier<>> all;
inline std::mutex one_at_a_time;

template <class T, class F>
T atomic(T* at, F change) {
  std::lock_guard<std::mutex> lock(one_at_a_time);
  T before = *at;
  *at = change(before);
  return before;
}
}  // namespace emulation

inline thread_local Index threadIdx, blockIdx;
inline thread_local Index gridDim;

inline void __syncthreads() { emulation::all->arrive_and_wait(); }

template <class T>
T atomicAdd(T* at, T value) {
  return emulation::atomic(at, [=](T old) { return old + value; });
}
template <class T>
T atomicMin(T* at, T value) {
  return emulation::atomic(at, [=](T old) { return std::min(old, value); });
}

template <class F>
void launch(int blocks, int threads, size_t bytes, F body) {
  for (int b = 0; b < blocks; ++b) {
    emulation::shared.assign(bytes / sizeof(std::max_align_t) + 1, {});
    emulation::all = std::make_unique<std::barrier<>>(threads);
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t)
      running.emplace_back([=] {
        threadIdx.x = t, blockIdx.x = b, gridDim.x = blocks;
        body();
      });
    for (auto& thread : running) thread.join();
  }
}
#define HG_LAUNCH(kernel, blocks, threads, bytes, stream, ...) \
  launch(blocks, threads, bytes, [&] { (kernel)(__VA_ARGS__); })

using cudaError_t = int;
using cudaStream_t = void*;
using cudaEvent_t = double*;
constexpr int cudaSuccess = 0, cudaStreamNonBlocking = 0, cudaHostAllocDefault = 0;
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize };
struct cudaDeviceProp {
  char name[256];
  size_t sharedMemPerBlock, sharedMemPerBlockOptin;
  int multiProcessorCount;
};

inline int cudaGetLastError() { return 0; }
inline const char* cudaGetErrorString(int code) { return code == 2 ? "out of memory" : "an error"; }
inline int cudaGetDeviceCount(int* n) { return *n = 1, 0; }
inline int cudaSetDevice(int) { return 0; }
inline int cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {"emulation", 48 * 1024, 64 * 1024, 2};
  return 0;
}
inline int cudaStreamCreateWithFlags(cudaStream_t*, int) { return 0; }
inline int cudaStreamSynchronize(cudaStream_t) { return 0; }
inline int cudaStreamDestroy(cudaStream_t) { return 0; }
inline int cudaEventCreate(cudaEvent_t* e) { return *e = new double(0), 0; }
inline int cudaEventDestroy(cudaEvent_t e) { return delete e, 0; }
inline int cudaEventRecord(cudaEvent_t e, cudaStream_t) {
  *e = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return 0;
}
inline int cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) { return *ms = float((*to - *from) * 1e3), 0; }
inline int cudaMalloc(void** at, size_t bytes) { return *at = std::aligned_alloc(256, (bytes + 255) / 256 * 256), *at ? 0 : 2; }
inline int cudaFree(void* at) { return std::free(at), 0; }
inline int cudaHostAlloc(void** at, size_t bytes, int) { return cudaMalloc(at, bytes); }
inline int cudaFreeHost(void* at) { return cudaFree(at); }
inline int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, cudaStream_t) { return std::memcpy(to, from, bytes), 0; }
inline int cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t) { return std::memset(at, value, bytes), 0; }
inline int cudaFuncSetAttribute(const void*, int, int) { return 0; }
template <class F>
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int, size_t) {
  return *blocks = 1, 0;
}
