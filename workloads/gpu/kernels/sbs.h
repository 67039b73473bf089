// Side-by-side frames to depth frames, as whole numbers: every device gives the same bytes.
//
//   frame       height x width x 3 bytes RGB; the left view in its left half, the right view in its right half
//   luma        Y = (77 R + 150 G + 29 B) >> 8
//   cost        e(x, y, s) = |Y_left(x, y) - Y_right(max(x - s, 0), y)|                 for shifts s = 0 .. S - 1
//   match       SAD(x, y, s) = sum of e(clamp(x + i), clamp(y + j), s) over i, j = -r .. r   (clamp: into the view)
//   depth       255 s* / (S - 1) rounded down, s* the smallest shift of the smallest SAD; height x width/2 bytes
//
// With r <= 7 a SAD is at most 225 * 255 = 57375, which fits 16 bits.
#pragma once

#include "device.h"

namespace hg {

constexpr int SBS_MOST_RADIUS = 7;
constexpr int SBS_MOST_SHIFTS = 256;

#if HG_CUDA

constexpr int SBS_THREADS = 256;

__global__ void sbs_luma(int64_t pixels, const uint8_t* rgb, uint8_t* luma) {
  for (int64_t i = blockIdx.x * int64_t(SBS_THREADS) + threadIdx.x; i < pixels; i += int64_t(gridDim.x) * SBS_THREADS)
    luma[i] = uint8_t((77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8);
}

__device__ inline int sbs_clamp(int value, int end) { return value < 0 ? 0 : value >= end ? end - 1 : value; }

__global__ void sbs_match(int64_t pixels, const uint8_t* luma, int width, int height, int shifts, int radius,
                          uint8_t* depth) {
  const int view = width / 2;
  for (int64_t p = blockIdx.x * int64_t(SBS_THREADS) + threadIdx.x; p < pixels; p += int64_t(gridDim.x) * SBS_THREADS) {
    const int x = int(p % view), y = int(p / view % height);
    const uint8_t* frame = luma + p / view / height * (int64_t(width) * height);
    int best = 1 << 30, shift = 0;
    for (int s = 0; s < shifts; ++s) {
      int sad = 0;
      for (int j = -radius; j <= radius; ++j) {
        const uint8_t* row = frame + int64_t(sbs_clamp(y + j, height)) * width;
        for (int i = -radius; i <= radius; ++i) {
          const int at = sbs_clamp(x + i, view), other = at - s < 0 ? 0 : at - s;
          const int e = int(row[at]) - int(row[view + other]);
          sad += e < 0 ? -e : e;
        }
      }
      if (sad < best) best = sad, shift = s;
    }
    depth[p] = uint8_t(255 * shift / (shifts - 1));
  }
}

inline int sbs_grid(const Device& d, int64_t n) {
  return int(std::min<int64_t>((n + SBS_THREADS - 1) / SBS_THREADS, int64_t(d.processors) * 32));
}

inline int sbs_run(Device& d, const uint8_t* rgb, uint8_t* luma, int64_t frames, int width, int height, int shifts,
                   int radius, uint8_t* depth) {
  const int64_t all = frames * width * height, half = frames * (width / 2) * height;
  HG_LAUNCH(sbs_luma, sbs_grid(d, all), SBS_THREADS, 0, d.stream, all, rgb, luma);
  HG_TRY(launched());
  HG_LAUNCH(sbs_match, sbs_grid(d, half), SBS_THREADS, 0, d.stream, half, luma, width, height, shifts, radius, depth);
  return launched();
}

#else

HG_CLONES
void sbs_luma_row(const uint8_t* rgb, uint8_t* luma, int width) {
  for (int x = 0; x < width; ++x)
    luma[x] = uint8_t((77 * rgb[3 * x] + 150 * rgb[3 * x + 1] + 29 * rgb[3 * x + 2]) >> 8);
}

// One row of depths.  columns has room for view + 2 radius, best and shift for view.
HG_CLONES
void sbs_row(const uint8_t* luma, int width, int height, int y, int shifts, int radius, uint16_t* columns,
             uint16_t* best, uint16_t* shift, uint8_t* depth) {
  const int view = width / 2;
  for (int x = 0; x < view; ++x) best[x] = 0xFFFF, shift[x] = 0;
  for (int s = 0; s < shifts; ++s) {
    uint16_t* column = columns + radius;
    for (int x = 0; x < view; ++x) column[x] = 0;
    for (int j = -radius; j <= radius; ++j) {
      const uint8_t* left = luma + int64_t(std::clamp(y + j, 0, height - 1)) * width;
      const uint8_t* right = left + view;
      const int edge = std::min(s, view);
      for (int x = 0; x < edge; ++x) column[x] += uint16_t(std::abs(int(left[x]) - int(right[0])));
      for (int x = edge; x < view; ++x) column[x] += uint16_t(std::abs(int(left[x]) - int(right[x - s])));
    }
    for (int i = 0; i < radius; ++i) columns[i] = column[0], column[view + i] = column[view - 1];
    for (int x = 0; x < view; ++x) {
      uint16_t sad = 0;
      for (int i = 0; i <= 2 * radius; ++i) sad = uint16_t(sad + columns[x + i]);
      const bool less = sad < best[x];
      shift[x] = less ? uint16_t(s) : shift[x];
      best[x] = less ? sad : best[x];
    }
  }
  for (int x = 0; x < view; ++x) depth[x] = uint8_t(255 * shift[x] / (shifts - 1));
}

inline int sbs_run(Device& d, const uint8_t* rgb, uint8_t* luma, int64_t frames, int width, int height, int shifts,
                   int radius, uint8_t* depth) {
  const int64_t rows = frames * height, view = width / 2;
#pragma omp parallel num_threads(d.threads)
  {
    std::vector<uint16_t> columns(size_t(view + 2 * radius)), best(size_t(view), 0), shift(size_t(view), 0);
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row) sbs_luma_row(rgb + row * width * 3, luma + row * width, width);
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; ++row)
      sbs_row(luma + row / height * height * width, width, height, int(row % height), shifts, radius, columns.data(),
              best.data(), shift.data(), depth + row * view);
  }
  return 0;
}

#endif

// The uploaded frames.  Results: their depth frames.
inline int sbs(Device& d, int64_t frames, int width, int height, int shifts, int radius, double* ns) {
  if (frames < 1 || width < 2 || width % 2 || height < 1 || shifts < 2 || shifts > SBS_MOST_SHIFTS || radius < 0 ||
      radius > SBS_MOST_RADIUS)
    return fail(BAD_ARGUMENT, "%lld frames of %d x %d, %d shifts, radius %d", (long long)frames, width, height, shifts,
                radius);
  const int64_t pixels = frames * width * height;
  HG_TRY(expect(d, pixels * 3));
  HG_TRY(reserve(d, SCRATCH, pixels));
  HG_TRY(reserve(d, OUTPUT, pixels / 2));
  HG_TRY(mark(d, 0));
  HG_TRY(sbs_run(d, at<uint8_t>(d, INPUT), at<uint8_t>(d, SCRATCH), frames, width, height, shifts, radius,
                 at<uint8_t>(d, OUTPUT)));
  HG_TRY(mark(d, 1));
  return elapsed(d, ns);
}

}  // namespace hg
