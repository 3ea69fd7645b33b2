// Column-wise rules where a row counts as much as its weight.
#pragma once

#include <algorithm>
#include <memory>

#include "byzadmm/median.hpp"

namespace byzadmm {

namespace detail {

template <class T>
struct Weighed {
  T value;
  double weight;
};

/// rule(column, count) -> value for every column of x, sorted by value.
template <class T, class Rule>
void on_sorted_columns(Rows<T> x, const double* weight, T* out, int threads, Rule&& rule) {
  constexpr index_t kColumns = 16;  // whole cache lines of every row
  const index_t tiles = (x.d + kColumns - 1) / kColumns, slots = threads < tiles ? threads : tiles;
  const std::unique_ptr<Weighed<T>[]> scratch(new Weighed<T>[static_cast<std::size_t>(slots * kColumns * x.n)]);
  for_tiles(x.d, kColumns, threads, [&](index_t lo, index_t hi, int slot) {
    Weighed<T>* columns = scratch.get() + slot * kColumns * x.n;
    for (index_t i = 0; i < x.n; ++i)
      for (index_t j = lo; j < hi; ++j) columns[(j - lo) * x.n + i] = {x.row[i][j], weight[i]};
    for (index_t j = lo; j < hi && !stopping(); ++j) {
      Weighed<T>* mine = columns + (j - lo) * x.n;
      std::stable_sort(mine, mine + x.n, [](const Weighed<T>& a, const Weighed<T>& b) { return a.value < b.value; });
      out[j] = rule(mine, x.n);
    }
  });
}

}  // namespace detail

/// out_j = the value where half of the weight lies on either side; between two values `even` decides.
/// x: (n, d), finite; weight: (n), positive.
template <class T>
BYZ_NOINLINE void weighted_median(Rows<T> x, const double* weight, Even even, T* out, int threads) {
  double total = 0;
  for (index_t i = 0; i < x.n; ++i) total += weight[i];
  detail::on_sorted_columns(x, weight, out, threads, [=](const detail::Weighed<T>* column, index_t n) {
    // Weights that are equal in exact arithmetic may add up to a little more or less than half.
    const double half = total / 2, slack = total * static_cast<double>(n) * 2.3e-16;
    double below = 0;
    index_t i = 0;
    while (i < n - 1 && below + column[i].weight < half - slack) below += column[i++].weight;
    const bool between = i < n - 1 && below + column[i].weight <= half + slack;
    if (!between || even == Even::low) return column[i].value;
    if (even == Even::high) return column[i + 1].value;
    return detail::middle<T>(simd::splat(column[i].value), simd::splat(column[i + 1].value), even)[0];
  });
}

/// out_j = weighted mean of column j without the weight `cut` at either end, in part where a value lies across the cut.
/// x: (n, d), finite; weight: (n), positive; 0 <= 2 cut < sum of weights.
template <class T>
BYZ_NOINLINE void weighted_trimmed_mean(Rows<T> x, const double* weight, double cut, T* out, int threads) {
  double total = 0;
  for (index_t i = 0; i < x.n; ++i) total += weight[i];
  detail::on_sorted_columns(x, weight, out, threads, [=](detail::Weighed<T>* column, index_t n) {
    const double crumb = total * static_cast<double>(n) * 2.3e-16;  // of rounding: it must not let 1e300 in
    double below = 0, kept = 0, sum = 0;
    for (index_t i = 0; i < n; ++i) {  // weights become what is left of them
      double& share = column[i].weight;
      const double above = below + share, inside = std::min(above, total - cut) - std::max(below, cut);
      if (cut > 0) share = inside > crumb ? inside : 0.0;
      below = above;
      kept += share;
      sum += share * static_cast<double>(column[i].value);
    }
    const double mean = sum / kept;
    if (mean - mean == 0) return static_cast<T>(mean);
    return static_cast<T>(detail::mean_without_overflow(n, kept, [=](index_t i, double unit) {
      return column[i].weight * (static_cast<double>(column[i].value) * unit);
    }));
  });
}

}  // namespace byzadmm
