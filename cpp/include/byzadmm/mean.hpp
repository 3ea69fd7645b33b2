// Column-wise mean, and the look at rows and columns that follows when a mean was not finite.
#pragma once

#include <cmath>
#include <limits>
#include <memory>

#include "byzadmm/parallel.hpp"
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

/// acc_j = sum_i w_i x_ij over columns [lo, hi), in double, rows in order.
template <class T, class Weight>
BYZ_ALWAYS_INLINE void add_rows(Rows<T> x, index_t lo, index_t hi, double* BYZ_RESTRICT acc, Weight weight) {
  const index_t width = hi - lo;
  for (index_t j = 0; j < width; ++j) acc[j] = 0;
  index_t i = 0;
  for (; i + 4 <= x.n; i += 4) {  // four rows at a time: acc is loaded and stored a quarter as often
    const T *a = x.row[i] + lo, *b = x.row[i + 1] + lo, *c = x.row[i + 2] + lo, *d = x.row[i + 3] + lo;
    for (index_t j = 0; j < width; ++j)
      acc[j] += (weight(i, a[j]) + weight(i + 1, b[j])) + (weight(i + 2, c[j]) + weight(i + 3, d[j]));
  }
  for (; i < x.n; ++i) {
    const T* a = x.row[i] + lo;
    for (index_t j = 0; j < width; ++j) acc[j] += weight(i, a[j]);
  }
}

}  // namespace detail

/// out_j = sum_i w_i x_ij / sum_i w_i (all w_i = 1 without weights).  x: (n, d), n >= 1; out: (d), may be a row of x
/// only if n = 1.  Returns whether some out_j is not finite: then some x_ij is not.
template <class T>
BYZ_NOINLINE bool mean(Rows<T> x, const double* weight, T* out, int threads) {
  const auto weight_of = [=](index_t i) { return weight ? weight[i] : 1.0; };
  double total = 0, largest = 0;
  for (index_t i = 0; i < x.n; ++i) {
    total += weight_of(i);
    largest = std::fmax(largest, weight_of(i));
  }
  const index_t tiles = (x.d + detail::kMeanTile - 1) / detail::kMeanTile;
  const std::unique_ptr<bool[]> said(new bool[static_cast<std::size_t>(tiles)]());
  for_tiles(x.d, detail::kMeanTile, threads, [&](index_t lo, index_t hi, int) {
    double acc[detail::kMeanTile];
    if (weight) detail::add_rows(x, lo, hi, acc, [=](index_t i, T v) { return weight[i] * static_cast<double>(v); });
    else detail::add_rows(x, lo, hi, acc, [](index_t, T v) { return static_cast<double>(v); });
    double odd = 0;
    for (index_t j = lo; j < hi; ++j) {
      const double value = acc[j - lo] / total;
      out[j] = static_cast<T>(value);
      odd += value - value;
    }
    if (odd == 0) return;
    odd = 0;
    for (index_t j = lo; j < hi; ++j) {
      if (out[j] - out[j] == 0) continue;
      out[j] = static_cast<T>(detail::mean_without_overflow(x.n, total / largest, [=](index_t i, double unit) {
        return weight_of(i) / largest * (static_cast<double>(x.row[i][j]) * unit);
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
