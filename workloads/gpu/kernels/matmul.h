// Products of pairs of square tiles, row by row, single precision.
//
// A pair is A, then B, each tile x tile floats; the result is A B.  With repeats the same product is computed again and
// again: more arithmetic for the same bytes.  Results of two devices differ by the rounding of `tile` additions.
#pragma once

#include "device.h"

namespace hg {

#if HG_CUDA

constexpr int MM_BIG = 128;    // side of what a block of threads computes
constexpr int MM_DEEP = 8;     // of the inner dimension at once
constexpr int MM_THREADS = 256;
constexpr int MM_SMALL = 16;

// Sides that are multiples of 128: each thread keeps 8 x 8 results in registers, in four groups of 4 x 4, and shared
// memory holds two stages: one is read while the next is filled.
__global__ void __launch_bounds__(MM_THREADS) mm_big(const float* pairs, int tile, float* out) {
  __shared__ float4 a_stage[2][MM_DEEP][MM_BIG / 4];  // transposed: a row is one inner index
  __shared__ float4 b_stage[2][MM_DEEP][MM_BIG / 4];
  const int64_t cells = int64_t(tile) * tile;
  const int across = tile / MM_BIG;
  const int64_t pair = blockIdx.x / (across * across);
  const int block = int(blockIdx.x % (across * across)), by = block / across, bx = block % across;
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const float* a = pairs + pair * 2 * cells + int64_t(by) * MM_BIG * tile;
  const float* b = pairs + pair * 2 * cells + cells + bx * MM_BIG;
  // Each thread carries four floats of A (half a row of 8) and four of B.
  const int a_row = t / 2, a_col = t % 2 * 4, b_row = t / 32, b_col = t % 32;

  float sum[8][8] = {};
  float4 from_a = *reinterpret_cast<const float4*>(a + int64_t(a_row) * tile + a_col);
  float4 from_b = *reinterpret_cast<const float4*>(b + int64_t(b_row) * tile + b_col * 4);
  int stage = 0;
  for (int k = 0;; k += MM_DEEP) {
    float* column = reinterpret_cast<float*>(&a_stage[stage][a_col][0]) + a_row;
    column[0] = from_a.x, column[MM_BIG] = from_a.y, column[2 * MM_BIG] = from_a.z, column[3 * MM_BIG] = from_a.w;
    b_stage[stage][b_row][b_col] = from_b;
    __syncthreads();
    const bool more = k + MM_DEEP < tile;
    if (more) {
      from_a = *reinterpret_cast<const float4*>(a + int64_t(a_row) * tile + k + MM_DEEP + a_col);
      from_b = *reinterpret_cast<const float4*>(b + int64_t(k + MM_DEEP + b_row) * tile + b_col * 4);
    }
#pragma unroll
    for (int q = 0; q < MM_DEEP; ++q) {
      float4 a0 = a_stage[stage][q][ty], a1 = a_stage[stage][q][16 + ty];
      float4 b0 = b_stage[stage][q][tx], b1 = b_stage[stage][q][16 + tx];
      const float u[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      const float v[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += u[i] * v[j];
    }
    if (!more) break;
    stage ^= 1;  // what was filled two rounds ago has been read by all: they have passed the barrier since
  }
  float* to = out + pair * cells + int64_t(by) * MM_BIG * tile + bx * MM_BIG;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = (i < 4 ? 0 : 64) + ty * 4 + i % 4;
    float4 low = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    float4 high = make_float4(sum[i][4], sum[i][5], sum[i][6], sum[i][7]);
    *reinterpret_cast<float4*>(to + int64_t(row) * tile + tx * 4) = low;
    *reinterpret_cast<float4*>(to + int64_t(row) * tile + 64 + tx * 4) = high;
  }
}

// Any side: a result for each thread, 16 x 16 of both tiles at once in shared memory.
__global__ void __launch_bounds__(MM_THREADS) mm_any(const float* pairs, int tile, float* out) {
  __shared__ float a_part[MM_SMALL][MM_SMALL], b_part[MM_SMALL][MM_SMALL];
  const int64_t cells = int64_t(tile) * tile;
  const int across = (tile + MM_SMALL - 1) / MM_SMALL;
  const int64_t pair = blockIdx.x / (across * across);
  const int block = int(blockIdx.x % (across * across));
  const int tx = threadIdx.x % MM_SMALL, ty = threadIdx.x / MM_SMALL;
  const int row = block / across * MM_SMALL + ty, column = block % across * MM_SMALL + tx;
  const float *a = pairs + pair * 2 * cells, *b = a + cells;
  float sum = 0;
  for (int k = 0; k < tile; k += MM_SMALL) {
    a_part[ty][tx] = row < tile && k + tx < tile ? a[int64_t(row) * tile + k + tx] : 0.0f;
    b_part[ty][tx] = k + ty < tile && column < tile ? b[int64_t(k + ty) * tile + column] : 0.0f;
    __syncthreads();
    for (int q = 0; q < MM_SMALL; ++q) sum += a_part[ty][q] * b_part[q][tx];
    __syncthreads();
  }
  if (row < tile && column < tile) out[pair * cells + int64_t(row) * tile + column] = sum;
}

inline int mm_run(Device& d, const float* pairs, int64_t n, int tile, float* out) {
  const bool big = tile % MM_BIG == 0;
  const int64_t across = big ? tile / MM_BIG : (tile + MM_SMALL - 1) / MM_SMALL, blocks = n * across * across;
  if (blocks > INT32_MAX) return fail(BAD_ARGUMENT, "%lld pairs are too many for one launch", (long long)n);
  if (big) HG_LAUNCH(mm_big, int(blocks), MM_THREADS, 0, d.stream, pairs, tile, out);
  else HG_LAUNCH(mm_any, int(blocks), MM_THREADS, 0, d.stream, pairs, tile, out);
  return launched();
}

#else

constexpr int MM_ROWS = 4, MM_COLUMNS = 32;

// Rows first .. first + rows - 1 of one product.
HG_CLONES
void mm_rows(const float* a, const float* b, int tile, int first, int rows, float* c) {
  for (int from = 0; from < tile; from += MM_COLUMNS) {
    const int columns = tile - from < MM_COLUMNS ? tile - from : MM_COLUMNS;
    float sum[MM_ROWS][MM_COLUMNS] = {};
    if (rows == MM_ROWS && columns == MM_COLUMNS) {
      for (int k = 0; k < tile; ++k)
        for (int i = 0; i < MM_ROWS; ++i)
          for (int j = 0; j < MM_COLUMNS; ++j) sum[i][j] += a[int64_t(first + i) * tile + k] * b[int64_t(k) * tile + from + j];
    } else {
      for (int k = 0; k < tile; ++k)
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < columns; ++j) sum[i][j] += a[int64_t(first + i) * tile + k] * b[int64_t(k) * tile + from + j];
    }
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) c[int64_t(first + i) * tile + from + j] = sum[i][j];
  }
}

inline int mm_run(Device& d, const float* pairs, int64_t n, int tile, float* out) {
  const int64_t cells = int64_t(tile) * tile, strips = (tile + MM_ROWS - 1) / MM_ROWS;
#pragma omp parallel for schedule(static) num_threads(d.threads)
  for (int64_t strip = 0; strip < n * strips; ++strip) {
    const int64_t pair = strip / strips;
    const int first = int(strip % strips) * MM_ROWS;
    const float* a = pairs + pair * 2 * cells;
    mm_rows(a, a + cells, tile, first, std::min(MM_ROWS, tile - first), out + pair * cells);
  }
  return 0;
}

#endif

// The uploaded pairs.  Results: their products.
inline int matmul(Device& d, int64_t n, int tile, int repeats, double* ns) {
  if (n < 1 || tile < 1 || repeats < 1)
    return fail(BAD_ARGUMENT, "%lld pairs of tiles of side %d, %d times", (long long)n, tile, repeats);
  const int64_t bytes = n * tile * tile * 4;
  HG_TRY(expect(d, 2 * bytes));
  HG_TRY(reserve(d, OUTPUT, bytes));
  HG_TRY(mark(d, 0));
  for (int r = 0; r < repeats; ++r) HG_TRY(mm_run(d, at<float>(d, INPUT), n, tile, at<float>(d, OUTPUT)));
  HG_TRY(mark(d, 1));
  return elapsed(d, ns);
}

}  // namespace hg
