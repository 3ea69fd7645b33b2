// Means of chosen rows, many at once: every row replaced by the mean of its neighbors.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "byzadmm/cache.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

namespace detail {

/// The mean of x[neighbor_s * stride] where the plain sum was not finite: summed 2^64 times smaller, and within the
/// range of the values. What is not finite passes through.
template <class T>
double scaled_mean(const T* x, index_t stride, const index_t* neighbor, index_t size) {
  double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  for (index_t s = 0; s < size; ++s) {
    const auto value = static_cast<double>(x[neighbor[s] * stride]);
    sum += value * 0x1p-64;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!std::isfinite(sum)) return sum;
  return std::min(std::max(sum / static_cast<double>(size) * 0x1p64, low), high);
}

/// sums_p = sum of the rows 4 g + b for the bits b of p, over four vectors of columns.  row: (4, stride); sums: (16, ...).
template <class T>
BYZ_ALWAYS_INLINE void sum_subsets(const T* row, index_t stride, double* sums) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>, kStep = 4 * L;
  for (index_t c = 0; c < kStep; c += L) {
    const V x0 = simd::load_doubles(row + c), x1 = simd::load_doubles(row + stride + c);
    const V x2 = simd::load_doubles(row + 2 * stride + c), x3 = simd::load_doubles(row + 3 * stride + c);
    const V s3 = x0 + x1, s5 = x0 + x2, s6 = x1 + x2, s7 = s3 + x2;
    const V sum[16] = {V{}, x0, x1, s3, x2, s5, s6, s7, x3, x0 + x3, x1 + x3, s3 + x3, x2 + x3, s5 + x3, s6 + x3, s7 + x3};
    for (int p = 1; p < 16; ++p) simd::store(sums + p * kStep + c, sum[p]);
  }
}

}  // namespace detail

/// out_i = mean of the rows x_k, k in neighbor_i.  x: (n, d); neighbor: (count, size), indices below n, none twice in a
/// line; out: (count, d), distinct from x.  The sums of all subsets of four rows are formed once per tile of columns,
/// so that a mean adds n/4 of them instead of up to n rows; everything in double, in the order of the index.
template <class T>
BYZ_NOINLINE void neighbor_means(Rows<T> x, const index_t* neighbor, index_t count, index_t size, T* out, int threads) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>, kStep = 4 * L, kTile = 8 * kStep, kGroup = 4, kSubsets = 16;
  const index_t groups = (x.n + kGroup - 1) / kGroup;
  // Where in the table the sum of the neighbors among the rows of each group begins.
  std::vector<std::uint32_t> place(static_cast<std::size_t>(count * groups));
  for (index_t i = 0; i < count; ++i) {
    std::uint32_t* mine = place.data() + i * groups;
    for (index_t g = 0; g < groups; ++g) mine[g] = static_cast<std::uint32_t>(g * kSubsets * kStep);
    for (index_t s = 0; s < size; ++s) {
      const index_t k = neighbor[i * size + s];
      mine[k / kGroup] += static_cast<std::uint32_t>(kStep << k % kGroup);
    }
  }
  const index_t rows_size = groups * kGroup * kTile, sums_size = groups * kSubsets * kStep;
  const index_t slots = std::min<index_t>(threads, (x.d + kTile - 1) / kTile);
  const std::unique_ptr<T[]> row_scratch(new T[static_cast<std::size_t>(slots * rows_size + detail::kCacheLine)]());
  const std::unique_ptr<double[]> sum_scratch(new double[static_cast<std::size_t>(slots * sums_size + detail::kCacheLine)]());
  const double divisor = static_cast<double>(size);
  for_tiles(x.d, kTile, threads, [&](index_t lo, index_t hi, int slot) {
    T* rows = detail::line_start(row_scratch.get()) + slot * rows_size;
    double* sums = detail::line_start(sum_scratch.get()) + slot * sums_size;
    for (index_t i = 0; i < x.n; ++i) std::copy(x.row[i] + lo, x.row[i] + hi, rows + i * kTile);
    detail::Ahead<T> ahead(x, hi, std::min(hi + kTile, x.d));
    for (index_t j = 0; j < hi - lo; j += kStep) {
      ahead.ask(ahead.size() / (kTile / kStep) + 1);
      for (index_t g = 0; g < groups; ++g) detail::sum_subsets(rows + g * kGroup * kTile + j, kTile, sums + g * kSubsets * kStep);
      for (index_t i = 0; i < count; ++i) {
        if (i % 64 == 0 && stopping()) return;
        const std::uint32_t* mine = place.data() + i * groups;
        V s0{}, s1{}, s2{}, s3{};
        for (index_t g = 0; g < groups; ++g) {
          const double* from = sums + mine[g];
          s0 += simd::load(from), s1 += simd::load(from + L), s2 += simd::load(from + 2 * L), s3 += simd::load(from + 3 * L);
        }
        T mean[kStep];
        if constexpr (sizeof(T) == sizeof(double)) {
          s0 /= divisor, s1 /= divisor, s2 /= divisor, s3 /= divisor;
        } else {  // rounded again, to far fewer digits
          const double part = 1 / divisor;
          s0 *= part, s1 *= part, s2 *= part, s3 *= part;
        }
        const index_t room = hi - lo - j;
        T* to = room >= kStep ? out + i * x.d + lo + j : mean;
        simd::store_doubles(to, s0), simd::store_doubles(to + L, s1);
        simd::store_doubles(to + 2 * L, s2), simd::store_doubles(to + 3 * L, s3);
        if constexpr (sizeof(T) == sizeof(double)) {  // sums of float32 numbers are in range
          double odd = 0;
          for (index_t c = 0; c < kStep; ++c) odd += to[c] - to[c];
          for (index_t c = 0; odd != 0 && c < kStep; ++c)
            if (!std::isfinite(to[c])) to[c] = detail::scaled_mean(rows + j + c, kTile, neighbor + i * size, size);
        }
        if (to == mean) std::copy(mean, mean + room, out + i * x.d + lo + j);
      }
    }
  });
}

}  // namespace byzadmm
