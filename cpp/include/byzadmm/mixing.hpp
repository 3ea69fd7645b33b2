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

/// The mean of column j of the rows neighbor_s where the plain sum was not finite: summed 2^64 times smaller, and
/// within the range of the values. What is not finite passes through.
template <class T>
double scaled_mean(Rows<T> x, index_t j, const index_t* neighbor, index_t size) {
  double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  for (index_t s = 0; s < size; ++s) {
    const auto value = static_cast<double>(x.row[neighbor[s]][j]);
    sum += value * 0x1p-64;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!std::isfinite(sum)) return sum;
  return std::min(std::max(sum / static_cast<double>(size) * 0x1p64, low), high);
}

/// sums_p = sum of the rows b for the bits b of p > 0.  row: (4, stride); sums: (16, 4 vectors).
template <class T>
BYZ_ALWAYS_INLINE void sum_subsets(const T* row, index_t stride, double* sums) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>, kStep = 4 * L;
  for (index_t c = 0; c < kStep; c += L) {
    const V x0 = simd::load_as<double>(row + c), x1 = simd::load_as<double>(row + stride + c);
    const V x2 = simd::load_as<double>(row + 2 * stride + c), x3 = simd::load_as<double>(row + 3 * stride + c);
    const V s3 = x0 + x1, s5 = x0 + x2, s6 = x1 + x2, s7 = s3 + x2;
    const V sum[16] = {V{}, x0,      x1,      s3,      x2,      s5,      s6,      s7,
                       x3,  x0 + x3, x1 + x3, s3 + x3, x2 + x3, s5 + x3, s6 + x3, s7 + x3};
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
      mine[k / kGroup] |= static_cast<std::uint32_t>(kStep << k % kGroup);
    }
  }
  const index_t rows_size = groups * kGroup * kTile, sums_size = groups * kSubsets * kStep;
  const index_t slots = std::min<index_t>(threads, (x.d + kTile - 1) / kTile);
  const std::unique_ptr<T[]> row_scratch(new T[static_cast<std::size_t>(slots * rows_size + detail::kCacheLine)]());
  const std::unique_ptr<double[]> sum_scratch(
      new double[static_cast<std::size_t>(slots * sums_size + detail::kCacheLine)]());
  const double divisor = static_cast<double>(size), part = 1 / divisor;
  // The columns [at, at + kStep) of out_i, as far as `hi`, from their sums.
  const auto finish = [=](index_t i, index_t at, index_t hi, V s0, V s1, V s2, V s3) BYZ_LAMBDA_INLINE {
    if constexpr (sizeof(T) == sizeof(double)) s0 /= divisor, s1 /= divisor, s2 /= divisor, s3 /= divisor;
    else s0 *= part, s1 *= part, s2 *= part, s3 *= part;  // rounded again, to far fewer digits
    T mean[kStep];
    T* to = at + kStep <= hi ? out + i * x.d + at : mean;
    simd::store_as(to, s0), simd::store_as(to + L, s1);
    simd::store_as(to + 2 * L, s2), simd::store_as(to + 3 * L, s3);
    if (to == mean) std::copy(mean, mean + (hi - at), out + i * x.d + at);
    if constexpr (sizeof(T) == sizeof(double)) {  // sums of float32 numbers are in range
      double odd = 0;
      T* means = out + i * x.d;
      const index_t end = std::min(at + kStep, hi);
      for (index_t c = at; c < end; ++c) odd += means[c] - means[c];
      for (index_t c = at; odd != 0 && c < end; ++c)
        if (!std::isfinite(means[c])) means[c] = detail::scaled_mean(x, c, neighbor + i * size, size);
    }
  };
  for_tiles(x.d, kTile, threads, [&](index_t lo, index_t hi, int slot) {
    T* rows = detail::line_start(row_scratch.get()) + slot * rows_size;
    double* sums = detail::line_start(sum_scratch.get()) + slot * sums_size;
    for (index_t i = 0; i < x.n; ++i) std::copy(x.row[i] + lo, x.row[i] + hi, rows + i * kTile);
    detail::Ahead<T> ahead(x, hi, std::min(hi + kTile, x.d));
    for (index_t j = 0; j < hi - lo; j += kStep) {
      ahead.ask(ahead.size() / (kTile / kStep) + 1);
      for (index_t g = 0; g < groups; ++g)
        detail::sum_subsets(rows + g * kGroup * kTile + j, kTile, sums + g * kSubsets * kStep);
      for (index_t i = 0; i < count; i += 2) {  // two at a time: their sums wait for each other less
        if (i % 64 == 0 && stopping()) return;
        const index_t second = std::min(i + 1, count - 1);
        const std::uint32_t *mine = place.data() + i * groups, *other = place.data() + second * groups;
        V a0{}, a1{}, a2{}, a3{}, b0{}, b1{}, b2{}, b3{};
        for (index_t g = 0; g < groups; ++g) {
          const double *a = sums + mine[g], *b = sums + other[g];
          a0 += simd::load(a), a1 += simd::load(a + L), a2 += simd::load(a + 2 * L), a3 += simd::load(a + 3 * L);
          b0 += simd::load(b), b1 += simd::load(b + L), b2 += simd::load(b + 2 * L), b3 += simd::load(b + 3 * L);
        }
        finish(i, lo + j, hi, a0, a1, a2, a3);
        finish(second, lo + j, hi, b0, b1, b2, b3);
      }
    }
  });
}

}  // namespace byzadmm
