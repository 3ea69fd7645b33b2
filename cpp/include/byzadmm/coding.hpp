// Gradients computed by several workers each: sums of rows, the look at coded rows, and the vote of equal ones.
#pragma once

#include <cstring>
#include <vector>

#include "byzadmm/mean.hpp"
#include "byzadmm/simd.hpp"

namespace byzadmm {

/// out_j = sum_i w_i x_ij / total in double, rows in order; w_i any finite numbers.  x: (n, d), n >= 1; out: (d).
/// Finite wherever the result is, though a partial sum may be too large.
template <class T>
BYZ_NOINLINE void weighted_sum(Rows<T> x, const double* w, double total, T* out, int threads) {
  for_tiles(x.d, detail::kMeanTile, threads, [&](index_t lo, index_t hi, int) {
    double acc[detail::kMeanTile];
    detail::add_rows(x, lo, hi, acc, [=](index_t i, auto v) { return v * w[i]; });
    if (!detail::divide_sums(acc, total, lo, hi, out)) return;
    for (index_t j = lo; j < hi; ++j)
      if (!(acc[j - lo] - acc[j - lo] == 0))
        out[j] = static_cast<T>(detail::mean_without_overflow(
            x.n, total, [=](index_t i, double unit) { return w[i] * (static_cast<double>(x.row[i][j]) * unit); }));
  });
}

namespace detail {

/// What one pass finds of a row u + sqrt(-1) v, or of some of its columns.
struct Look {
  double re = 0, im = 0;  // its product with phi
  double squares = 0;     // of its elements: NaN if one of them is NaN
  double largest = 0;     // in size
};

/// u, v: (count) numbers of a row; phi: (count).
template <class T>
BYZ_ALWAYS_INLINE Look look_at(const T* u, const T* v, const double* phi, double scale, index_t count) {
  using simd::vec;
  constexpr index_t L = simd::lanes<double>;
  const vec<double> by = simd::splat(scale);
  vec<double> re{}, im{}, square_u{}, square_v{}, largest{};
  const auto add = [&](vec<double> a, vec<double> b, vec<double> p) {
    a = a * by;
    b = b * by;
    re = simd::madd<double>(a, p, re);
    im = simd::madd<double>(b, p, im);
    square_u = simd::madd<double>(a, a, square_u);
    square_v = simd::madd<double>(b, b, square_v);
    largest = simd::max(simd::max(simd::max(a, -a), simd::max(b, -b)), largest);
  };
  index_t j = 0;
  for (; j + L <= count; j += L) add(simd::load_as<double>(u + j), simd::load_as<double>(v + j), simd::load(phi + j));
  if (j < count)
    add(simd::load_part_as<double>(u + j, count - j), simd::load_part_as<double>(v + j, count - j),
        simd::load_part(phi + j, count - j));
  Look all{simd::sum_lanes<double>(re), simd::sum_lanes<double>(im), simd::sum_lanes<double>(square_u + square_v)};
  for (index_t l = 0; l < L; ++l)
    if (largest[l] > all.largest) all.largest = largest[l];
  return all;
}

}  // namespace detail

/// Of every row of 2d numbers, d real parts and then d imaginary ones, all times `scale`: its product with phi (two
/// numbers), the sum of its squares, and its largest element in size.  phi_j = inner[j % tile] outer[j / tile]: to draw
/// d numbers would cost as much as the look.  x: (n, 2d); inner: (tile); outer: (ceil(d / tile)); out: (n, 4).
template <class T>
BYZ_NOINLINE void look_at_rows(Rows<T> x, const double* inner, index_t tile, const double* outer, double scale,
                               double* out, int threads) {
  const index_t d = x.d / 2, tiles = (d + tile - 1) / tile;
  std::vector<detail::Look> part(static_cast<std::size_t>(tiles * x.n));
  for_tiles(d, tile, threads, [&](index_t lo, index_t hi, int) {
    detail::Look* to = part.data() + lo / tile * x.n;
    for (index_t i = 0; i < x.n; ++i) to[i] = detail::look_at(x.row[i] + lo, x.row[i] + d + lo, inner, scale, hi - lo);
  });
  for (index_t i = 0; i < x.n; ++i) {
    detail::Look all;
    for (index_t t = 0; t < tiles; ++t) {
      const detail::Look& one = part[static_cast<std::size_t>(t * x.n + i)];
      all.re += outer[t] * one.re;
      all.im += outer[t] * one.im;
      all.squares += one.squares;
      if (one.largest > all.largest) all.largest = one.largest;
    }
    double* to = out + 4 * i;
    to[0] = all.re, to[1] = all.im, to[2] = all.squares, to[3] = all.largest;
  }
}

/// chosen_g = a row of group g whose bits at least `votes` rows of it have, -1 if there is none.  Rows first[g] ..
/// first[g+1]-1 are those of group g; votes more than half of them.  first: (groups + 1); chosen: (groups).
template <class T>
BYZ_NOINLINE void majority_rows(Rows<T> x, const index_t* first, index_t groups, index_t votes, index_t* chosen,
                                int threads) {
  const auto bytes = static_cast<std::size_t>(x.d) * sizeof(T);
  for_tasks(groups, threads, [&](index_t g, int) {
    const auto equal = [&](index_t a, index_t b) { return std::memcmp(x.row[a], x.row[b], bytes) == 0; };
    index_t candidate = -1, lead = 0;  // Boyer and Moore: only this row can have a majority
    for (index_t i = first[g]; i < first[g + 1]; ++i) {
      if (lead == 0) candidate = i;
      lead += lead == 0 || equal(candidate, i) ? 1 : -1;
    }
    index_t count = lead;  // at most as many as are equal to it
    if (count < votes) {
      count = 0;
      for (index_t i = first[g]; i < first[g + 1]; ++i) count += i == candidate || equal(candidate, i);
    }
    chosen[g] = count >= votes ? candidate : -1;
  });
}

}  // namespace byzadmm
