// Rows shortened to a given length, around zero (clip) or around a point that follows them (centered clipping).
#pragma once

#include "byzadmm/distances.hpp"

namespace byzadmm {

namespace detail {

/// norm_i = sqrt(sum of partial over tiles), done over where squares left the range of T.  partial: (tiles, n).
template <class T>
void finish_norms(Rows<T> x, const T* center, const double* partial, index_t tiles, double* norm, int threads) {
  for_tasks(x.n, threads, [&](index_t i, int) {
    double sum = 0;
    for (index_t t = 0; t < tiles; ++t) sum += partial[t * x.n + i];
    norm[i] = is_safe<T>(sum) ? std::sqrt(sum) : safe_distance(x.row[i], center, x.d);
  });
}

/// sum of (x_j - center_j)^2 over columns [lo, hi), at most a tile; center may be null.
template <class T>
BYZ_ALWAYS_INLINE double squares(const T* x, const T* center, index_t lo, index_t hi) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  V even{}, odd{};
  const auto apart = [&](index_t j, index_t count) {
    const V value = count >= L ? simd::load(x + j) : simd::load_part(x + j, count);
    if (!center) return value;
    return value - (count >= L ? simd::load(center + j) : simd::load_part(center + j, count));
  };
  index_t j = lo;
  for (; j + 2 * L <= hi; j += 2 * L) {
    const V first = apart(j, L), second = apart(j + L, L);
    even = simd::madd<T>(first, first, even);
    odd = simd::madd<T>(second, second, odd);
  }
  for (; j < hi; j += L) {
    const V first = apart(j, hi - j);
    even = simd::madd<T>(first, first, even);
  }
  return static_cast<double>(simd::sum_lanes<T>(even + odd));
}

constexpr double kLongestRow = 1e30;

/// move_j += sum_i factor_i (x_ij - v_j) over columns [lo, hi): four rows in S, then in double.
template <class S, class T>
BYZ_ALWAYS_INLINE void add_moves(Rows<T> x, const T* v, const double* factor, index_t lo, index_t hi, double* move) {
  index_t i = 0;
  for (; i + 4 <= x.n; i += 4) {
    const T *a = x.row[i], *b = x.row[i + 1], *c = x.row[i + 2], *d = x.row[i + 3];
    const S p = static_cast<S>(factor[i]), q = static_cast<S>(factor[i + 1]);
    const S r = static_cast<S>(factor[i + 2]), s = static_cast<S>(factor[i + 3]);
    for (index_t j = lo; j < hi; ++j) {
      const S from = static_cast<S>(v[j]);
      move[j - lo] += static_cast<double>((p * (static_cast<S>(a[j]) - from) + q * (static_cast<S>(b[j]) - from)) +
                                          (r * (static_cast<S>(c[j]) - from) + s * (static_cast<S>(d[j]) - from)));
    }
  }
  for (; i < x.n; ++i) {
    const T* a = x.row[i];
    const S p = static_cast<S>(factor[i]);
    for (index_t j = lo; j < hi; ++j)
      move[j - lo] += static_cast<double>(p * (static_cast<S>(a[j]) - static_cast<S>(v[j])));
  }
}

}  // namespace detail

/// v <- v + (1/n) sum_i (x_i - v) min(1, tau / ||x_i - v||), n_iter times.
/// x: (n, d), finite; v: (d), the center and then the result, distinct from x; factor: (n), the last min(1, ...).
/// A tile of columns is moved and measured while it is in the cache: n_iter + 1 passes over the rows.
template <class T>
BYZ_NOINLINE void centered_clip(Rows<T> x, double tau, int n_iter, T* v, double* factor, int threads) {
  using namespace detail;
  constexpr index_t kTile = 2 * kDistanceTile<T>;
  const index_t n = x.n, tiles = (x.d + kTile - 1) / kTile;
  const std::unique_ptr<double[]> partial(new double[static_cast<std::size_t>(tiles * n)]);
  const auto measure = [&](index_t lo, index_t hi) {
    for (index_t i = 0; i < n; ++i) partial[lo / kTile * n + i] = squares(x.row[i], v, lo, hi);
  };
  for_tiles(x.d, kTile, threads, [&](index_t lo, index_t hi, int) { measure(lo, hi); });
  for (int iteration = 0; iteration < n_iter; ++iteration) {
    finish_norms(x, v, partial.get(), tiles, factor, threads);
    const bool again = iteration + 1 < n_iter;
    bool usual = true;  // no row so long that T is too narrow for its differences or its factor
    for (index_t i = 0; i < n; ++i) usual = usual && factor[i] <= kLongestRow;
    for (index_t i = 0; i < n; ++i) factor[i] = factor[i] <= tau ? 1.0 : tau / factor[i];
    for (index_t i = 0; i < n; ++i) usual = usual && factor[i] >= 1.0 / kLongestRow;
    for_tiles(x.d, kTile, threads, [&](index_t lo, index_t hi, int) {
      double move[kTile] = {};
      if (usual) add_moves<T>(x, v, factor, lo, hi, move);
      else add_moves<double>(x, v, factor, lo, hi, move);
      for (index_t j = lo; j < hi; ++j)
        v[j] = static_cast<T>(static_cast<double>(v[j]) + move[j - lo] / static_cast<double>(n));
      if (again) measure(lo, hi);
    });
  }
}

/// out_i = x_i min(1, max_norm / ||x_i||).  x: (n, d); out: (n, d), distinct from x; norm: (n), of the rows as they
/// came.
template <class T>
BYZ_NOINLINE void clip(Rows<T> x, double max_norm, T* out, double* norm, int threads) {
  using namespace detail;
  constexpr index_t kTile = kDistanceTile<T>;
  for_tasks(x.n, threads, [&](index_t i, int) {
    double sum = 0;
    for (index_t lo = 0; lo < x.d; lo += kTile) sum += squares<T>(x.row[i], nullptr, lo, std::min(lo + kTile, x.d));
    norm[i] = is_safe<T>(sum) ? std::sqrt(sum) : safe_distance<T>(x.row[i], nullptr, x.d);
    T* to = out + i * x.d;
    const double factor = max_norm / norm[i];
    if (norm[i] <= max_norm) std::copy(x.row[i], x.row[i] + x.d, to);
    else
      for (index_t j = 0; j < x.d; ++j) to[j] = static_cast<T>(static_cast<double>(x.row[i][j]) * factor);
  });
}

}  // namespace byzadmm
