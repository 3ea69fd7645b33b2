// Means of chosen rows, many at once: every row replaced by the mean of its neighbors.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

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

}  // namespace detail

/// out_i = mean of the rows x_k, k in neighbor_i.  x: (n, d); neighbor: (count, size), indices below n, none twice in a
/// line; out: (count, d), distinct from x.  The sums of all subsets of four rows are formed once per tile of columns,
/// so that a mean adds n/4 of them instead of up to n rows; everything in double, in the order of the index.
template <class T>
BYZ_NOINLINE void neighbor_means(Rows<T> x, const index_t* neighbor, index_t count, index_t size, T* out, int threads) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>, kVectors = 4, kStep = kVectors * L, kTile = 8 * kStep, kGroup = 4;
  constexpr index_t kSubsets = index_t{1} << kGroup;
  const index_t groups = (x.n + kGroup - 1) / kGroup;
  const std::unique_ptr<unsigned char[]> subset(new unsigned char[static_cast<std::size_t>(count * groups)]());
  for (index_t i = 0; i < count; ++i)
    for (index_t s = 0; s < size; ++s) {
      const index_t k = neighbor[i * size + s];
      subset[i * groups + k / kGroup] |= static_cast<unsigned char>(1 << k % kGroup);
    }
  const index_t rows_size = groups * kGroup * kTile, sums_size = groups * kSubsets * kStep, means_size = count * kTile;
  const index_t slots = std::min<index_t>(threads, (x.d + kTile - 1) / kTile);
  const std::unique_ptr<T[]> row_scratch(new T[static_cast<std::size_t>(slots * (rows_size + means_size))]());
  const std::unique_ptr<double[]> sum_scratch(new double[static_cast<std::size_t>(slots * sums_size)]());
  const double divisor = static_cast<double>(size);
  for_tiles(x.d, kTile, threads, [&](index_t lo, index_t hi, int slot) {
    T* rows = row_scratch.get() + slot * (rows_size + means_size);
    T* means = rows + rows_size;
    double* sums = sum_scratch.get() + slot * sums_size;
    for (index_t i = 0; i < x.n; ++i) {
      for (index_t j = hi; j < std::min(hi + kTile, x.d); j += 64 / static_cast<index_t>(sizeof(T)))
        __builtin_prefetch(x.row[i] + j);
      std::copy(x.row[i] + lo, x.row[i] + hi, rows + i * kTile);
    }
    for (index_t j = 0; j < hi - lo; j += kStep) {
      for (index_t g = 0; g < groups; ++g)
        for (index_t member = 0; member < kGroup; ++member) {
          const T* row = rows + (g * kGroup + member) * kTile + j;
          double wide[kStep];
          for (index_t c = 0; c < kStep; ++c) wide[c] = static_cast<double>(row[c]);
          for (index_t other = 0; other < index_t{1} << member; ++other) {  // subsets of the members before this one
            const double* from = sums + (g * kSubsets + other) * kStep;
            double* to = sums + (g * kSubsets + other + (index_t{1} << member)) * kStep;
            for (index_t c = 0; c < kStep; ++c) to[c] = from[c] + wide[c];
          }
        }
      for (index_t i = 0; i < count; ++i) {
        if (i % 64 == 0 && stopping()) return;
        const unsigned char* mine = subset.get() + i * groups;
        V sum[kVectors] = {};
        for (index_t g = 0; g < groups; ++g) {
          const double* from = sums + (g * kSubsets + mine[g]) * kStep;
          for (index_t v = 0; v < kVectors; ++v) sum[v] += simd::load(from + v * L);
        }
        double mean[kStep], odd = 0;
        for (index_t v = 0; v < kVectors; ++v) simd::store(mean + v * L, sum[v] / divisor);
        for (index_t c = 0; c < kStep; ++c) odd += mean[c] - mean[c];
        for (index_t c = 0; odd != 0 && c < kStep; ++c)
          if (!std::isfinite(mean[c])) mean[c] = detail::scaled_mean(rows + j + c, kTile, neighbor + i * size, size);
        for (index_t c = 0; c < kStep; ++c) means[i * kTile + j + c] = static_cast<T>(mean[c]);
      }
    }
    for (index_t i = 0; i < count; ++i) std::copy(means + i * kTile, means + i * kTile + (hi - lo), out + i * x.d + lo);
  });
}

}  // namespace byzadmm
