// Column-wise mean of the values closest to a center: the second half of Meamed, Phocas and Bulyan.
#pragma once

#include <limits>

#include "byzadmm/median.hpp"

namespace byzadmm {

namespace detail {

/// (v[0] + ... + v[n-1]) / k lane by lane, summed in double, finite for finite values.
template <class T>
BYZ_ALWAYS_INLINE simd::vec<T> sum_over(const simd::vec<T>* v, index_t n, index_t k) {
  constexpr int L = simd::lanes<T>;
  const auto count = static_cast<double>(k);
  double sum[L] = {};
  for (index_t i = 0; i < n; ++i)
    for (int l = 0; l < L; ++l) sum[l] += static_cast<double>(v[i][l]);
  simd::vec<T> mean;
  for (int l = 0; l < L; ++l) {
    double value = sum[l] / count;
    if (value - value != 0)
      value =
          mean_without_overflow(n, count, [=](index_t i, double unit) { return static_cast<double>(v[i][l]) * unit; });
    mean[l] = static_cast<T>(value);
  }
  return mean;
}

}  // namespace detail

/// out_j = mean of the k values x_ij with the least |x_ij - center_j|, the lowest i among equals.
/// x: (n, d), finite, 1 <= k <= n; center: (d); out: (d), distinct from both.  Kept values are summed in double.
template <class T>
BYZ_NOINLINE void closest_mean(Rows<T> x, const T* center, index_t k, T* out, int threads) {
  using V = simd::vec<T>;
  using M = simd::vec<simd::int_of<T>>;
  constexpr index_t L = simd::lanes<T>;
  const index_t n = x.n, columns = select_columns<T>(n), scratch = n * (columns / L + 2);
  const index_t tiles = (x.d + columns - 1) / columns, slots = threads < tiles ? threads : tiles;
  const bool small = n <= kMaxNetwork;
  std::vector<Exchange> table;
  if (small)
    table = selection_table(static_cast<int>(n), static_cast<int>(k - 1), static_cast<int>(k - 1), Wanted::sorted);
  const std::unique_ptr<V[]> packed(new V[static_cast<std::size_t>(slots * scratch)]);
  for_tiles(x.d, columns, threads, [&](index_t lo, index_t hi, int slot) {
    V* value = packed.get() + slot * scratch;
    V *apart = value + n * (columns / L), *sorted = apart + n;
    pack_columns<T>(x, lo, hi, value);
    for (index_t j = lo; j < hi && !stopping(); j += L, value += n) {
      const V middle = j + L <= hi ? simd::load(center + j) : simd::load_part(center + j, hi - j, center[hi - 1]);
      // |x_ij - center_j| * unit in every lane; returns the k-th least.
      const auto measure = [&](V unit) {
        for (index_t i = 0; i < n; ++i) {
          const V difference = value[i] * unit - middle * unit;
          apart[i] = simd::max(difference, -difference);
        }
        if (!small) return ColumnSelector<T>(apart, n).at_rank_and_next(k - 1)[0];
        for (index_t i = 0; i < n; ++i) sorted[i] = apart[i];
        run_table(table, sorted);
        return sorted[k - 1];
      };
      const V one = simd::splat(T(1));
      V radius = measure(one);
      // Only where values so far away are kept are their halves compared: halves of subnormals would lose a bit.
      const M too_wide = radius > std::numeric_limits<T>::max();
      if (simd::any(too_wide)) radius = measure(too_wide ? simd::splat(T(0.5)) : one);
      M room = M{} + static_cast<simd::int_of<T>>(k);
      for (index_t i = 0; i < n; ++i) room += apart[i] < radius;
      for (index_t i = 0; i < n; ++i) {
        const M at_edge = (apart[i] == radius) & (room > 0);
        room += at_edge;
        sorted[i] = ((apart[i] < radius) | at_edge) ? value[i] : V{};
      }
      detail::put(out + j, detail::sum_over<T>(sorted, n, k), hi - j);
    }
  });
}

}  // namespace byzadmm
