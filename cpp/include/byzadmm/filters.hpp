// What filters measure: sums of messages over rounds, and the distances between them.
#pragma once

#include "byzadmm/clipping.hpp"

namespace byzadmm {

namespace detail {

/// A length as a number to compare: infinite where it is beyond float64, or where the row is not finite.
inline double comparable(Length length) {
  const double value = length.value();
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

}  // namespace detail

/// sums_w += factor x_i for the worker w of every row i, then out_w = ||sums_w - sums_center|| for all w.
/// x: (n, d); worker: (n), different numbers below m; sums: (m, d); out: (m). A tile of columns is added and measured
/// while it is in the cache: one pass over rows and sums.
template <class T>
BYZ_NOINLINE void add_to_sums(Rows<T> x, const index_t* worker, double factor, double* sums, index_t m, index_t center,
                              double* out, int threads) {
  using namespace detail;
  constexpr index_t kTile = kDistanceTile<double>;
  const index_t d = x.d, tiles = (d + kTile - 1) / kTile;
  const std::unique_ptr<double[]> partial(new double[static_cast<std::size_t>(tiles * m)]);
  const double* middle = sums + center * d;
  for_tiles(d, kTile, threads, [&](index_t lo, index_t hi, int) {
    for (index_t i = 0; i < x.n; ++i) {
      const T* from = x.row[i];
      double* to = sums + worker[i] * d;
#pragma GCC ivdep
      for (index_t j = lo; j < hi; ++j) to[j] += factor * static_cast<double>(from[j]);
    }
    for (index_t w = 0; w < m; ++w) partial[lo / kTile * m + w] = squares<double>(sums + w * d, middle, lo, hi);
  });
  for_tasks(m, threads, [&](index_t w, int) {
    double sum = 0;
    for (index_t t = 0; t < tiles; ++t) sum += partial[t * m + w];
    out[w] = comparable(length_of<double>(sum, sums + w * d, middle, d));
  });
}

}  // namespace byzadmm
