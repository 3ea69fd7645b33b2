// Column-wise mean, and the look at rows and columns that follows when a mean was not finite.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

namespace detail {

constexpr index_t kMeanTile = 512;

/// (value(0) + ... + value(n-1)) / total for finite numbers whose plain sum overflows: summed 2^64 times smaller, where
/// nothing is lost that counts up there. A mean of finite values is finite; only rounding at the very top says
/// otherwise.
template <class Value>
inline double mean_without_overflow(index_t n, double total, Value value) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += value(i, 0x1p-64);
  const double mean = sum / total * 0x1p64;
  const bool rounded_up = sum - sum == 0 && mean - mean != 0;
  return rounded_up ? std::copysign(std::numeric_limits<double>::max(), sum) : mean;
}

/// The power of two that brings `weight` to about 2^500: products with subnormal numbers then keep their digits. What
/// overflows up there is summed again by mean_without_overflow.
inline double lift_of(double weight) { return std::ldexp(1.0, 500 - std::ilogb(weight)); }

/// acc_j = sum_i weigh(i, x_ij) over columns [lo, hi), in double, rows in order. A strip of columns stays in registers
/// while all rows pass. The hardware does not follow so many rows: the strips to come are fetched here.
template <class T, class Weigh>
BYZ_ALWAYS_INLINE void add_rows(Rows<T> x, index_t lo, index_t hi, double* BYZ_RESTRICT acc, Weigh weigh) {
  using V = simd::vec<double>;
  constexpr index_t kVectors = 4 * sizeof(double) / sizeof(T), L = simd::lanes<double>, kStrip = kVectors * L;
  constexpr index_t kLine = 64 / static_cast<index_t>(sizeof(T));
  const index_t ahead = (x.n <= 32 ? 32 : 8) * kLine;  // what is fetched for all rows fits the second-level cache
  index_t at = lo;
  for (; at + kStrip <= hi; at += kStrip, acc += kStrip) {
    V sum[kVectors] = {};
    const bool more = at + ahead + kStrip <= x.d;
    for (index_t i = 0; i < x.n; ++i) {
      const T* row = x.row[i] + at;
      for (index_t j = 0; more && j < kStrip; j += kLine) __builtin_prefetch(row + ahead + j);
      for (index_t v = 0; v < kVectors; ++v) sum[v] += weigh(i, simd::load_as<double>(row + v * L));
    }
    for (index_t v = 0; v < kVectors; ++v) simd::store(acc + v * L, sum[v]);
  }
  for (index_t j = 0; j < hi - at; ++j) acc[j] = 0;
  for (index_t i = 0; i < x.n && at < hi; ++i)
    for (index_t j = 0; j < hi - at; ++j) acc[j] += weigh(i, static_cast<double>(x.row[i][at + j]));
}

/// out_j = acc_j / total over columns [lo, hi).  Returns whether some quotient is not finite.
template <class T>
BYZ_ALWAYS_INLINE bool divide_sums(const double* acc, double total, index_t lo, index_t hi, T* out) {
  constexpr index_t L = simd::lanes<double>;
  simd::vec<std::int64_t> odd{};
  for (; lo + L <= hi; lo += L, acc += L) {
    const simd::vec<double> value = simd::load(acc) / total;
    odd |= (value - value) != 0.0;
    simd::store_as(out + lo, value);
  }
  bool any = simd::any(odd);
  for (; lo < hi; ++lo, ++acc) {
    const double value = *acc / total;
    any |= value - value != 0;
    out[lo] = static_cast<T>(value);
  }
  return any;
}

}  // namespace detail

/// out_j = sum_i w_i x_ij / sum_i w_i (all w_i = 1 without weights).  x: (n, d), n >= 1; out: (d), may be a row of x
/// only if n = 1.  Returns whether some out_j is not finite: then some x_ij is not.
template <class T>
BYZ_NOINLINE bool mean(Rows<T> x, const double* weight, T* out, int threads) {
  double total = static_cast<double>(x.n), largest = 1;
  std::vector<double> lifted;
  if (weight) {
    largest = *std::max_element(weight, weight + x.n);
    const double lift = detail::lift_of(largest);
    for (index_t i = 0; i < x.n; ++i) lifted.push_back(weight[i] * lift);
    total = std::accumulate(lifted.begin(), lifted.end(), 0.0);
    largest *= lift;
  }
  const index_t tiles = (x.d + detail::kMeanTile - 1) / detail::kMeanTile;
  const std::unique_ptr<bool[]> said(new bool[static_cast<std::size_t>(tiles)]());
  for_tiles(x.d, detail::kMeanTile, threads, [&](index_t lo, index_t hi, int) {
    double acc[detail::kMeanTile];
    const double* w = weight ? lifted.data() : nullptr;
    if (w) detail::add_rows(x, lo, hi, acc, [=](index_t i, auto v) { return v * w[i]; });
    else detail::add_rows(x, lo, hi, acc, [](index_t, auto v) { return v; });
    if (!detail::divide_sums(acc, total, lo, hi, out)) return;
    double odd = 0;
    for (index_t j = lo; j < hi; ++j) {
      if (out[j] - out[j] == 0) continue;
      out[j] = static_cast<T>(detail::mean_without_overflow(x.n, total / largest, [=](index_t i, double unit) {
        return (w ? w[i] / largest : 1.0) * (static_cast<double>(x.row[i][j]) * unit);
      }));
      odd += static_cast<double>(out[j] - out[j]);
    }
    said[static_cast<std::size_t>(lo / detail::kMeanTile)] = odd != 0;
  });
  bool any = false;
  for (index_t t = 0; t < tiles; ++t) any |= said[static_cast<std::size_t>(t)];
  return any;
}

/// bad_i = row i holds a NaN or an infinity.  bad: (n).
template <class T>
BYZ_NOINLINE void nonfinite_rows(Rows<T> x, bool* bad, int threads) {
  for_tasks(x.n, threads, [&](index_t i, int) {
    const T* row = x.row[i];
    bool finite = true;
    for (index_t lo = 0; lo < x.d && finite; lo += detail::kMeanTile) {
      const index_t hi = lo + detail::kMeanTile < x.d ? lo + detail::kMeanTile : x.d;
      int odd = 0;
      for (index_t j = lo; j < hi; ++j) odd |= !(row[j] - row[j] == T(0));
      finite = odd == 0;
    }
    bad[i] = !finite;
  });
}

/// out_j = NaN wherever some x_ij is NaN: what a rule that only compares values must still pass on.
template <class T>
BYZ_NOINLINE void mark_nan_columns(Rows<T> x, T* out, int threads) {
  for_tiles(x.d, detail::kMeanTile, threads, [&](index_t lo, index_t hi, int) {
    for (index_t i = 0; i < x.n; ++i)
      for (index_t j = lo; j < hi; ++j)
        if (x.row[i][j] != x.row[i][j]) out[j] = x.row[i][j];
  });
}

}  // namespace byzadmm
