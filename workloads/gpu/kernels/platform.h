// What differs between the two builds of one source: CUDA's runtime, or plain memory and threads.
#pragma once

#include <algorithm>
#include <cfloat>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(HG_EMULATION)
#include HG_EMULATION  // tests run the CUDA bodies on a processor: same text, threads of this process
#define HG_CUDA 1
#elif defined(__CUDACC__)
#include <cuda_runtime.h>
#define HG_CUDA 1
#define HG_LAUNCH(kernel, blocks, threads, shared, stream, ...) kernel<<<blocks, threads, shared, stream>>>(__VA_ARGS__)
#define HG_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#else
#define HG_CUDA 0
#endif

// Where the compiler can, an inner loop is built for AVX2 with FMA as well, and chosen when the library is loaded.
#if !HG_CUDA && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define HG_CLONES static __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define HG_CLONES static
#endif

namespace hg {

// Codes of our own lie above CUDA's.
constexpr int OUT_OF_MEMORY = 2;  // cudaErrorMemoryAllocation
constexpr int BAD_ARGUMENT = 10001;

// Text that explains the last code that was not 0, for the thread that got it.
inline char* text() {
  static thread_local char buffer[512];
  return buffer;
}

template <class... T>
int fail(int code, const char* format, T... values) {
  std::snprintf(text(), 512, format, values...);
  return code;
}

inline double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#define HG_TRY(call)                    \
  do {                                  \
    if (int code_ = (call)) return code_; \
  } while (0)

}  // namespace hg
