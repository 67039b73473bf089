// K-means: nearest centre of each point, and sums of the points of each centre.
//
// Points are compared by |c|^2/2 - x.c, with x and c less the mean of the centres: this has the same order as the
// distance, takes half the arithmetic, and stays exact where the data lie far from the origin.  Ties go to the lower
// number.  A point whose comparison is not finite (NaN, infinite or too large a coordinate) is reported by its number.
//
// The sums are doubles.  Their order, and so their last bits, differ between devices.
#pragma once

#include "device.h"

namespace hg {

// What the kernel is given: mean (d), then for each centre its d coordinates less the mean, then its half norm.
inline void prepare_centres(const float* centres, int k, int d, float* to) {
  for (int j = 0; j < d; ++j) {
    double sum = 0;
    for (int c = 0; c < k; ++c) sum += centres[int64_t(c) * d + j];
    to[j] = float(sum / k);
  }
  for (int c = 0; c < k; ++c) {
    double norm = 0;
    float* row = to + d + int64_t(c) * (d + 1);
    for (int j = 0; j < d; ++j) {
      row[j] = float(double(centres[int64_t(c) * d + j]) - double(to[j]));
      norm += double(row[j]) * double(row[j]);
    }
    row[d] = float(norm / 2);
  }
}

#if HG_CUDA

constexpr int KM_THREADS = 128;

// Where a block of threads adds up: a column of shared memory for each thread, one for all, or device memory at once.
enum Adding { OWN, BLOCK, GLOBAL };

template <int D>
__device__ inline void km_load(const float* points, int64_t i, int d, float* x) {
  if constexpr (D > 0 && D % 4 == 0) {
    const float4* row = reinterpret_cast<const float4*>(points + i * D);
#pragma unroll
    for (int q = 0; q < D / 4; ++q) {
      float4 v = row[q];
      x[4 * q] = v.x, x[4 * q + 1] = v.y, x[4 * q + 2] = v.z, x[4 * q + 3] = v.w;
    }
  } else if constexpr (D > 0) {
#pragma unroll
    for (int j = 0; j < D; ++j) x[j] = points[i * D + j];
  }
}

template <int D>
__device__ inline int km_nearest(const float* centre, const float* mean, const float* x, const float* row, int k, int d,
                                 bool* finite) {
  const int dims = D > 0 ? D : d;
  float moved[D > 0 ? D : 1];
  if constexpr (D > 0) {
#pragma unroll
    for (int j = 0; j < D; ++j) moved[j] = x[j] - mean[j];
  }
  float best = FLT_MAX;
  int nearest = -1;
  for (int c = 0; c < k; ++c) {
    const float* at = centre + c * (dims + 1);
    float score = at[dims];
    if constexpr (D > 0) {
#pragma unroll
      for (int j = 0; j < D; ++j) score -= moved[j] * at[j];
    } else {
      for (int j = 0; j < dims; ++j) score -= (row[j] - mean[j]) * at[j];
    }
    if (score < best) best = score, nearest = c;
  }
  *finite = nearest >= 0 && best > -FLT_MAX;
  return nearest;
}

// D: dimensions known to the compiler, 0: given by d.  Results: k * (d + 1) sums and counts; bad: lowest bad number.
template <int D, Adding ADDING>
__global__ void km_kernel(int64_t n, const float* points, const float* prepared, int k, int d, double* total,
                          unsigned long long* bad) {
  HG_DYNAMIC_SHARED(double, km_shared);
  const int dims = D > 0 ? D : d, cells = k * (dims + 1);
  const int columns = ADDING == OWN ? KM_THREADS : ADDING == BLOCK ? 1 : 0;
  double* sums = km_shared;
  float* mean = reinterpret_cast<float*>(km_shared + int64_t(cells) * columns);
  float* centre = mean + dims;
  for (int i = threadIdx.x; i < cells * columns; i += KM_THREADS) sums[i] = 0;
  for (int i = threadIdx.x; i < dims + cells; i += KM_THREADS) mean[i] = prepared[i];
  __syncthreads();

  const int64_t step = int64_t(gridDim.x) * KM_THREADS;
  float next[D > 0 ? D : 1];
  int64_t i = blockIdx.x * int64_t(KM_THREADS) + threadIdx.x;
  if (i < n) km_load<D>(points, i, d, next);
  for (; i < n; i += step) {
    float x[D > 0 ? D : 1];
    if constexpr (D > 0) {
#pragma unroll
      for (int j = 0; j < D; ++j) x[j] = next[j];
    }
    if (i + step < n) km_load<D>(points, i + step, d, next);  // on its way while this one is compared
    const float* row = points + i * dims;
    bool finite;
    const int c = km_nearest<D>(centre, mean, x, row, k, d, &finite);
    if (!finite) {
      atomicMin(bad, (unsigned long long)i);
      continue;
    }
    for (int j = 0; j <= dims; ++j) {
      double value = 1;
      if (j < dims) value = D > 0 ? double(x[D > 0 ? j : 0]) : double(row[j]);
      const int cell = c * (dims + 1) + j;
      if constexpr (ADDING == OWN) sums[cell * KM_THREADS + threadIdx.x] += value;
      else if constexpr (ADDING == BLOCK) atomicAdd(&sums[cell], value);
      else atomicAdd(&total[cell], value);
    }
  }
  if constexpr (ADDING != GLOBAL) {
    __syncthreads();
    for (int cell = threadIdx.x; cell < cells; cell += KM_THREADS) {
      double sum = 0;
      // Threads begin at different columns: at the same one they would wait for one bank of memory.
      for (int t = 0; t < columns; ++t) sum += sums[cell * columns + (columns > 1 ? (t + threadIdx.x) % columns : 0)];
      if (sum != 0) atomicAdd(&total[cell], sum);
    }
  }
}

template <int D, Adding ADDING>
int km_launch(Device& dev, int64_t n, const float* points, const float* prepared, int k, int d, double* total,
              unsigned long long* bad, int shared) {
  if (shared > 48 * 1024)
    HG_TRY(check(cudaFuncSetAttribute(reinterpret_cast<const void*>(&km_kernel<D, ADDING>),
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
                 "asking for shared memory"));
  int per_processor = 1;
  HG_TRY(check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, km_kernel<D, ADDING>, KM_THREADS,
                                                             size_t(shared)),
               "asking for the number of blocks"));
  const int64_t most = int64_t(std::max(per_processor, 1)) * dev.processors;
  const int blocks = int(std::min<int64_t>(most, (n + KM_THREADS - 1) / KM_THREADS));
  HG_LAUNCH((km_kernel<D, ADDING>), blocks, KM_THREADS, shared, dev.stream, n, points, prepared, k, d, total, bad);
  return launched();
}

template <int D>
int km_choose(Device& dev, int64_t n, const float* points, const float* prepared, int k, int d, double* total,
              unsigned long long* bad) {
  const int64_t cells = int64_t(k) * (d + 1), small = (cells + d) * 4;
  const int64_t own = cells * 8 * KM_THREADS + small, block = cells * 8 + small;
  // Two blocks of threads fit a processor at least, or each thread's own columns cost more than they save.
  if (own <= dev.shared_bytes / 2) return km_launch<D, OWN>(dev, n, points, prepared, k, d, total, bad, int(own));
  if (block <= dev.shared_bytes) return km_launch<D, BLOCK>(dev, n, points, prepared, k, d, total, bad, int(block));
  if (small <= dev.shared_bytes) return km_launch<D, GLOBAL>(dev, n, points, prepared, k, d, total, bad, int(small));
  return fail(BAD_ARGUMENT, "%d centres of %d dimensions do not fit the device's shared memory", k, d);
}

inline int km_run(Device& dev, int64_t n, const float* points, const float* prepared, int k, int d, double* total,
                  unsigned long long* bad) {
  switch (d) {
    case 2: return km_choose<2>(dev, n, points, prepared, k, d, total, bad);
    case 3: return km_choose<3>(dev, n, points, prepared, k, d, total, bad);
    case 4: return km_choose<4>(dev, n, points, prepared, k, d, total, bad);
    case 8: return km_choose<8>(dev, n, points, prepared, k, d, total, bad);
    case 16: return km_choose<16>(dev, n, points, prepared, k, d, total, bad);
    default: return km_choose<0>(dev, n, points, prepared, k, d, total, bad);
  }
}

#else

constexpr int KM_CHUNK = 256;  // points compared together, coordinate by coordinate

// The chunk's coordinates less the mean stand in x[j * KM_CHUNK + i].
HG_CLONES
void km_compare(const float* x, const float* centre, int k, int d, float* best, int32_t* nearest) {
  for (int i = 0; i < KM_CHUNK; ++i) best[i] = FLT_MAX, nearest[i] = -1;
  for (int c = 0; c < k; ++c) {
    const float* at = centre + int64_t(c) * (d + 1);
    float score[KM_CHUNK];
    for (int i = 0; i < KM_CHUNK; ++i) score[i] = at[d];
    for (int j = 0; j < d; ++j)
      for (int i = 0; i < KM_CHUNK; ++i) score[i] -= x[j * KM_CHUNK + i] * at[j];
    for (int i = 0; i < KM_CHUNK; ++i) {
      nearest[i] = score[i] < best[i] ? c : nearest[i];
      best[i] = score[i] < best[i] ? score[i] : best[i];
    }
  }
}

inline int64_t km_chunk(const float* points, int64_t first, int size, const float* prepared, int k, int d, float* x,
                        double* sums) {
  const float *mean = prepared, *centre = prepared + d;
  float best[KM_CHUNK];
  int32_t nearest[KM_CHUNK];
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < d; ++j) x[j * KM_CHUNK + i] = points[(first + i) * d + j] - mean[j];
  km_compare(x, centre, k, d, best, nearest);
  int64_t bad = -1;
  for (int i = 0; i < size; ++i) {
    if (nearest[i] < 0 || !(best[i] > -FLT_MAX)) {
      if (bad < 0) bad = first + i;
      continue;
    }
    const float* row = points + (first + i) * d;
    double* to = sums + int64_t(nearest[i]) * (d + 1);
    for (int j = 0; j < d; ++j) to[j] += row[j];
    to[d] += 1;
  }
  return bad;
}

inline int km_run(Device& dev, int64_t n, const float* points, const float* prepared, int k, int d, double* total,
                  unsigned long long* bad) {
  const int64_t cells = int64_t(k) * (d + 1), chunks = (n + KM_CHUNK - 1) / KM_CHUNK;
  std::vector<double> sums(size_t(cells) * dev.threads, 0.0);
  std::vector<int64_t> worst(size_t(dev.threads), -1);
#pragma omp parallel num_threads(dev.threads)
  {
    const int me = omp_get_thread_num();
    std::vector<float> x(size_t(d) * KM_CHUNK, 0.0f);
#pragma omp for schedule(static)
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t first = chunk * KM_CHUNK;
      const int size = int(std::min<int64_t>(KM_CHUNK, n - first));
      const int64_t found = km_chunk(points, first, size, prepared, k, d, x.data(), sums.data() + cells * me);
      if (found >= 0 && worst[me] < 0) worst[me] = found;
    }
  }
  for (int t = 0; t < dev.threads; ++t) {
    for (int64_t i = 0; i < cells; ++i) total[i] += sums[size_t(cells * t + i)];
    if (worst[t] >= 0) *bad = std::min<unsigned long long>(*bad, worst[t]);
  }
  return 0;
}

#endif

// The uploaded n points of d floats.  Results: for each of k centres d sums and the number of its points, as doubles;
// behind them, as a 64-bit number, the first bad point, or -1.
inline int kmeans(Device& dev, int64_t n, int d, const float* centres, int k, double* ns) {
  if (n < 1 || d < 1 || k < 1) return fail(BAD_ARGUMENT, "%lld points, %d dimensions, %d centres", (long long)n, d, k);
  const int64_t cells = int64_t(k) * (d + 1), small = (cells + d) * 4;
  std::vector<float> prepared(size_t(cells) + d);
  prepare_centres(centres, k, d, prepared.data());
  HG_TRY(expect(dev, n * d * 4));
  HG_TRY(reserve(dev, SMALL, small));
  HG_TRY(reserve(dev, OUTPUT, (cells + 1) * 8));
  double* total = at<double>(dev, OUTPUT);
  auto* bad = reinterpret_cast<unsigned long long*>(total + cells);
  const unsigned long long none = ~0ull;
  HG_TRY(to_device(dev, at<float>(dev, SMALL), prepared.data(), small));
  HG_TRY(to_device(dev, bad, &none, 8));
  HG_TRY(mark(dev, 0));
  HG_TRY(zero(dev, total, cells * 8));
  HG_TRY(km_run(dev, n, at<float>(dev, INPUT), at<float>(dev, SMALL), k, d, total, bad));
  HG_TRY(mark(dev, 1));
  return elapsed(dev, ns);
}

}  // namespace hg
