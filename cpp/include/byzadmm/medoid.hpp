// The row with the least sum of distances to the others.
//
// A sum rounds relative to its farthest row: a few rows far away hide the order of all others. Where plain sums cannot
// be told apart, two rows are compared by the sum of the differences, in which common far terms cancel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "byzadmm/distances.hpp"

namespace byzadmm {

namespace detail {

/// The bound of the relative rounding error of a plain sum of n distances between rows of length d.
template <class T>
double sum_rounding(index_t n, index_t d) {
  constexpr double kTileError =
      static_cast<double>(kDistanceTile<T> / simd::lanes<T> + 8) * std::numeric_limits<T>::epsilon();
  // Products of rows may cancel to a tenth.
  return (n > kDistanceBlock ? 10 : 1) * kTileError +
         static_cast<double>(n + d / kDistanceTile<T>) * std::numeric_limits<double>::epsilon();
}

/// Factors that bring differences of rows at a distance of about 2^(exponent / 2) to about 1: first `part`, which keeps
/// a difference of the largest numbers finite, then `unit`.
struct Scale {
  explicit Scale(std::int32_t exponent)
      : part(exponent > 2 * 1020 ? 0.25 : 1.0), unit(std::ldexp(1.0, -std::max(-1022, std::min(exponent / 2, 1022)))) {}
  double part, unit;
};

/// (||x_i - x_k|| - ||x_j - x_k||) / 2^e for a number e that x_i and x_j decide, whatever k is: the difference of the
/// squares is <x_i - x_j, (x_i - x_k) + (x_j - x_k)>, and rounding is relative to ||x_i - x_j|| however far x_k is.
template <class T>
double distance_difference(const T* xi, const T* xj, const T* xk, index_t d, Scale between, Scale away) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>;
  double product = 0, square_i = 0, square_j = 0;
  for (index_t lo = 0; lo < d; lo += kDistanceTile<T>) {
    const index_t hi = std::min(lo + kDistanceTile<T>, d);
    V p{}, a{}, b{};
    for (index_t c = lo; c < hi; c += L) {
      const V i = load_doubles(xi + c, hi - c), j = load_doubles(xj + c, hi - c);
      const V k = load_doubles(xk + c, hi - c) * away.part;
      const V from_i = (i * away.part - k) * away.unit, from_j = (j * away.part - k) * away.unit;
      p = simd::madd<double>((i * between.part - j * between.part) * between.unit, from_i + from_j, p);
      a = simd::madd<double>(from_i, from_i, a);
      b = simd::madd<double>(from_j, from_j, b);
    }
    product += simd::sum_lanes<double>(p);
    square_i += simd::sum_lanes<double>(a);
    square_j += simd::sum_lanes<double>(b);
  }
  return product / (std::sqrt(square_i) + std::sqrt(square_j));
}

}  // namespace detail

/// argmin_i of score_i = sum_k w_k ||x_i - x_k|| over the rows of positive weight (all w_k = 1 without weights), the
/// lowest index among equals; 0 if no row has weight.  x: (n, d), finite where it has weight; squared: (n, n), double
/// or Wide; score: (n), infinite for a row of weight 0, and where it is beyond the largest double.
template <class T, class N>
BYZ_NOINLINE index_t medoid(Rows<T> x, const N* squared, const double* weight, double* score, int threads) {
  using std::sqrt;
  const index_t n = x.n;
  std::vector<double> share(static_cast<std::size_t>(n), 1.0);
  if (weight) std::copy(weight, weight + n, share.begin());
  const auto exponent = [&](index_t i, index_t k) { return Wide(squared[i * n + k]).exponent; };
  std::vector<N> sum(static_cast<std::size_t>(n), N(std::numeric_limits<double>::infinity()));
  N least = sum[0];
  for (index_t i = 0; i < n; ++i) {
    if (share[i] > 0) {
      N part[4] = {};
      const auto add = [&](index_t k, N& to) { to += share[k] > 0 ? share[k] * sqrt(squared[i * n + k]) : N(0); };
      index_t k = 0;
      for (; k + 4 <= n; k += 4)
        for (index_t l = 0; l < 4; ++l) add(k + l, part[l]);
      for (; k < n; ++k) add(k, part[0]);
      sum[i] = (part[0] + part[1]) + (part[2] + part[3]);
    }
    score[i] = static_cast<double>(sum[i]);
    least = std::min(least, sum[i]);
  }
  const N limit = (1 + 3 * detail::sum_rounding<T>(n, x.d)) * least;
  const std::unique_ptr<double[]> term(new double[static_cast<std::size_t>(n)]);
  index_t best = -1;
  for (index_t i = 0; i < n; ++i) {
    if (!(share[i] > 0) || limit < sum[i]) continue;
    if (best < 0) {
      best = i;
      continue;
    }
    if (squared[i * n + best] == N(0)) continue;
    const detail::Scale between(exponent(i, best));
    for_tasks(n, threads, [&](index_t k, int) {
      if (!(share[k] > 0)) return;
      const detail::Scale away(std::max(exponent(i, k), exponent(best, k)));
      term[k] = detail::distance_difference(x.row[i], x.row[best], x.row[k], x.d, between, away);
    });
    double gap = 0;
    for (index_t k = 0; k < n; ++k)
      if (share[k] > 0) gap += share[k] * term[k];
    if (gap < 0) best = i;
  }
  return std::max<index_t>(best, 0);
}

template <class T>
index_t medoid(Rows<T> x, const SquaredDistances& squared, const double* weight, double* score, int threads) {
  index_t best = 0;
  visit(squared, [&](const auto* from) { best = medoid(x, from, weight, score, threads); });
  return best;
}

}  // namespace byzadmm
