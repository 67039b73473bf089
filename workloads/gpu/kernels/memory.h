// How fast the device reads its own memory: the rate that SPN-GC asks for, measured by the job itself.
#pragma once

#include "device.h"

namespace hg {

#if HG_CUDA

constexpr int MEM_THREADS = 256;

__global__ void mem_read(int64_t n, const float4* from, float* result) {
  float sum = 0;
  for (int64_t i = blockIdx.x * int64_t(MEM_THREADS) + threadIdx.x; i < n; i += int64_t(gridDim.x) * MEM_THREADS) {
    const float4 v = from[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum != 0) *result = sum;  // never so: the memory is cleared, but the compiler does not know
}

inline int mem_run(Device& d, int64_t bytes) {
  const int64_t n = bytes / 16;
  const int blocks = int(std::min<int64_t>((n + MEM_THREADS - 1) / MEM_THREADS, int64_t(d.processors) * 16));
  HG_LAUNCH(mem_read, blocks, MEM_THREADS, 0, d.stream, n, at<float4>(d, INPUT), at<float>(d, OUTPUT));
  return launched();
}

#else

HG_CLONES
uint64_t mem_sum(const uint64_t* from, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += from[i];
  return sum;
}

inline int mem_run(Device& d, int64_t bytes) {
  const int64_t n = bytes / 8, part = (n + d.threads - 1) / d.threads;
  uint64_t sum = 0;
#pragma omp parallel for num_threads(d.threads) reduction(+ : sum)
  for (int t = 0; t < d.threads; ++t)
    sum += mem_sum(at<uint64_t>(d, INPUT) + t * part, std::max<int64_t>(0, std::min(part, n - t * part)));
  *at<uint64_t>(d, OUTPUT) = sum;
  return 0;
}

#endif

// Bytes per second, the better of two passes over *bytes*.
inline int memory_rate(Device& d, int64_t bytes, double* rate) {
  if (bytes < 1024) return fail(BAD_ARGUMENT, "%lld bytes are too few to measure a rate", (long long)bytes);
  HG_TRY(reserve(d, INPUT, bytes));
  HG_TRY(reserve(d, OUTPUT, 64));
  HG_TRY(zero(d, at<char>(d, INPUT), bytes));
  *rate = 0;
  for (int pass = 0; pass < 2; ++pass) {
    double ns = 0;
    HG_TRY(mark(d, 0));
    HG_TRY(mem_run(d, bytes));
    HG_TRY(mark(d, 1));
    HG_TRY(elapsed(d, &ns));
    if (ns > 0) *rate = std::max(*rate, double(bytes) / (ns * 1e-9));
  }
  return 0;
}

}  // namespace hg
