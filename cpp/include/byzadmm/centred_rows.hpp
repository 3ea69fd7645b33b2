// Rows less a centre, in double, with squares and inner products of any finite size.
//
// Where plain squares would overflow or vanish, every row is scaled by a power of two of its own; lengths are kept in a
// unit that no minority of the rows can choose.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "byzadmm/cache.hpp"
#include "byzadmm/median.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"
#include "byzadmm/wide.hpp"

namespace byzadmm::detail {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
/// Size of a row that equals the centre: below every exponent, and 2^(kAtCentre - exponent) is 0.
constexpr int kAtCentre = -100000;

inline double dot(const double* BYZ_RESTRICT a, const double* BYZ_RESTRICT b, index_t count) {
  constexpr index_t L = simd::lanes<double>;
  simd::vec<double> even{}, odd{};
  index_t j = 0;
  for (; j + 2 * L <= count; j += 2 * L) {
    even = simd::madd<double>(simd::load(a + j), simd::load(b + j), even);
    odd = simd::madd<double>(simd::load(a + j + L), simd::load(b + j + L), odd);
  }
  double sum = simd::sum_lanes<double>(even + odd);
  for (; j < count; ++j) sum += a[j] * b[j];
  return sum;
}

/// y += f * x
inline void add_scaled(double f, const double* BYZ_RESTRICT x, double* BYZ_RESTRICT y, index_t count) {
  for (index_t j = 0; j < count; ++j) y[j] += f * x[j];
}

/// Plain: x_i - c.  Scaled: (x_i * half_i - c * half_i) * scale_i; x_i - c = filled * 2^exponent_i either way.
template <class T>
struct CentredRows {
  Rows<T> x;
  std::vector<double> c;            // (d) once there is a centre
  std::vector<double> half, scale;  // (n)
  std::vector<int> exponent;        // (n)
  bool scaled = false;

  explicit CentredRows(Rows<T> rows)
      : x(rows), half(static_cast<std::size_t>(rows.n), 1.0), scale(half), exponent(half.size(), 0) {}

  void set_centre(const T* centre) { c.assign(centre, centre + x.d); }

  void fill(index_t i, index_t lo, index_t hi, double* BYZ_RESTRICT y) const {
    const T* BYZ_RESTRICT row = x.row[i] + lo;
    const double* BYZ_RESTRICT centre = c.data() + lo;
    const index_t count = hi - lo;
    if (!scaled) {
      for (index_t j = 0; j < count; ++j) y[j] = static_cast<double>(row[j]) - centre[j];
      return;
    }
    const double h = half[i], s = scale[i];
    for (index_t j = 0; j < count; ++j) y[j] = (static_cast<double>(row[j]) * h - centre[j] * h) * s;
  }

  void use_plain() {
    scaled = false;
    std::fill(half.begin(), half.end(), 1.0);
    std::fill(scale.begin(), scale.end(), 1.0);
    std::fill(exponent.begin(), exponent.end(), 0);
  }

  /// Largest entry of every filled row in [1/2, 1), as far as powers of two reach.
  void use_scales(int threads) {
    use_plain();
    scaled = true;
    for_tasks(x.n, threads, [&](index_t i, int) {
      double most = largest(i);
      if (!(most <= std::numeric_limits<double>::max())) {
        half[i] = 0.5;
        most = largest(i);
      }
      if (most == 0) {
        exponent[i] = kAtCentre;
        return;
      }
      int e;
      std::frexp(most, &e);
      e = std::max(e, -1000);  // 2^1074 is no double; squares of 2^-74 do not mind
      scale[i] = std::ldexp(1.0, -e);
      exponent[i] = e + (half[i] < 1 ? 1 : 0);
    });
  }

  bool finite(index_t i) const {
    return std::all_of(x.row[i], x.row[i] + x.d, [](T v) { return std::isfinite(v); });
  }

  bool at_centre(index_t i) const { return largest(i) == 0; }

  bool same(index_t i, index_t k) const { return same_as(i, x.row[k]); }
  bool same_as(index_t i, const T* point) const { return std::equal(x.row[i], x.row[i] + x.d, point); }

 private:
  double largest(index_t i) const {
    double most = 0;
    for (index_t j = 0; j < x.d; ++j)
      most = std::max(most, std::abs(static_cast<double>(x.row[i][j]) * half[i] - c[j] * half[i]));
    return most;
  }
};

/// Sizes within this many powers of two are similar.
constexpr int kSimilar = 20;

/// The unit of length around a centre: two to the exponent of the smallest ball whose rows outweigh the pull of all
/// others, so that the solution is of its size, whatever a minority sends. Any size will do if they are all similar.
/// size: (n) exponents; pull(f) = ||sum_i f_i (x_i - c) / ||x_i - c|| ||.
template <class Pull>
int balanced_exponent(const std::vector<int>& size, const std::vector<double>& w, Pull&& pull) {
  std::vector<int> radius(size);
  std::sort(radius.begin(), radius.end());
  radius.erase(std::unique(radius.begin(), radius.end()), radius.end());
  if (radius.front() == kAtCentre) radius.erase(radius.begin());
  if (radius.empty()) return 0;
  if (radius.back() - radius.front() <= kSimilar) return radius.back();
  std::vector<double> outside(w.size());
  // A row that enters the ball lowers the difference, wherever it is.
  return *std::partition_point(radius.begin(), radius.end() - 1, [&](int r) {
    double inside = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      outside[i] = size[i] > r ? w[i] : 0.0;
      inside += w[i] - outside[i];
    }
    return pull(outside) > inside;
  });
}

constexpr index_t kStrip = 4 * simd::lanes<double>;

/// sum_j = sum_i f_i (x_ij - c_j) for the kStrip columns from `at`, held in registers.
template <class T>
void add_strip(const CentredRows<T>& rows, const double* f, index_t at, double* sum) {
  using V = simd::vec<double>;
  V centre[4], total[4] = {};
  for (int v = 0; v < 4; ++v) centre[v] = simd::load(rows.c.data() + at + v * simd::lanes<double>);
  for (index_t i = 0; i < rows.x.n; ++i) {
    const V factor = simd::splat(f[i]);
    for (int v = 0; v < 4; ++v) {
      const V x = simd::load_as<double>(rows.x.row[i] + at + v * simd::lanes<double>);
      total[v] = simd::madd<double>(factor, x - centre[v], total[v]);
    }
  }
  for (int v = 0; v < 4; ++v) simd::store(sum + v * simd::lanes<double>, total[v]);
}

/// Columns that are summed at a time.
constexpr index_t kColumns = 512;

/// out = c + 2^unit sum_i f_i filled_i.  Returns the length of what rounding to T took off, in units of 2^unit.
template <class T>
double combine_rows(const CentredRows<T>& rows, const std::vector<double>& f, int unit, T* out, int threads) {
  constexpr double kMost = static_cast<double>(std::numeric_limits<T>::max());
  const index_t n = rows.x.n;
  // At the top of the range in halves: the sum is between the rows, its terms may not be.
  const bool halved = unit > 900;
  const double half = halved ? 0.5 : 1.0, twice = 1 / half;
  const PowerOfTwo up(halved ? unit - 1 : unit), down(-unit);
  std::vector<double> lost(static_cast<std::size_t>((rows.x.d + kColumns - 1) / kColumns));
  for_tiles(rows.x.d, kColumns, threads, [&](index_t lo, index_t hi, int) {
    double y[kColumns], sum[kColumns] = {};
    const index_t whole = rows.scaled ? lo : lo + (hi - lo) / kStrip * kStrip;
    for (index_t at = lo; at < whole; at += kStrip) add_strip(rows, f.data(), at, sum + (at - lo));
    for (index_t i = 0; i < n && whole < hi; ++i) {
      rows.fill(i, whole, hi, y);
      add_scaled(f[i], y, sum + (whole - lo), hi - whole);
    }
    for (index_t j = lo; j < hi; ++j) {
      const double z = (rows.c[j] * half + sum[j - lo] * up.a * up.b) * twice;
      const double inside = std::min(std::max(z, -kMost), kMost);
      out[j] = static_cast<T>(inside);
      double error = inside - static_cast<double>(out[j]);
      if constexpr (sizeof(T) == 8)
        error = std::max(0.5 * kEpsilon * std::abs(inside), std::numeric_limits<double>::denorm_min());
      y[j - lo] = error * down.a * down.b;
    }
    lost[lo / kColumns] = dot(y, y, hi - lo);
  });
  return std::sqrt(std::accumulate(lost.begin(), lost.end(), 0.0));
}

/// z_j = c_j + sum_i f_i (x_ij - c_j) for the kStrip columns from `at`, held in registers.
template <class T>
BYZ_NOINLINE void combine_strip(Rows<T> x, const T* c, const double* f, index_t at, double* z) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>;
  const V c0 = simd::load_as<double>(c + at), c1 = simd::load_as<double>(c + at + L);
  const V c2 = simd::load_as<double>(c + at + 2 * L), c3 = simd::load_as<double>(c + at + 3 * L);
  V z0 = c0, z1 = c1, z2 = c2, z3 = c3;
  for (index_t i = 0; i < x.n; ++i) {
    const V factor = simd::splat(f[i]);
    const T* row = x.row[i] + at;
    z0 = simd::madd<double>(factor, simd::load_as<double>(row) - c0, z0);
    z1 = simd::madd<double>(factor, simd::load_as<double>(row + L) - c1, z1);
    z2 = simd::madd<double>(factor, simd::load_as<double>(row + 2 * L) - c2, z2);
    z3 = simd::madd<double>(factor, simd::load_as<double>(row + 3 * L) - c3, z3);
  }
  simd::store(z, z0), simd::store(z + L, z1), simd::store(z + 2 * L, z2), simd::store(z + 3 * L, z3);
}

/// ||x - z||^2 over `count` columns.
template <class T>
BYZ_NOINLINE double square_apart(const T* x, const double* z, index_t count) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>;
  V even{}, odd{};
  index_t j = 0;
  for (; j + 2 * L <= count; j += 2 * L) {
    const V a = simd::load_as<double>(x + j) - simd::load(z + j),
            b = simd::load_as<double>(x + j + L) - simd::load(z + j + L);
    even = simd::madd<double>(a, a, even);
    odd = simd::madd<double>(b, b, odd);
  }
  double sum = simd::sum_lanes<double>(even + odd);
  for (; j < count; ++j) sum += (static_cast<double>(x[j]) - z[j]) * (static_cast<double>(x[j]) - z[j]);
  return sum;
}

/// out = z = c + sum_i f_i (x_i - c), and square_i = ||x_i - z||^2 before z is rounded to T.  c: (d); square: (n).
/// Returns the length of what rounding took off.
template <class T>
double combine_and_measure(Rows<T> x, const T* c, const double* f, T* out, double* square, int threads) {
  const index_t n = x.n, tiles = (x.d + kColumns - 1) / kColumns;
  std::vector<double> partial(static_cast<std::size_t>(tiles * (n + 1)));  // n squares, and what was lost
  for_tiles(x.d, kColumns, threads, [&](index_t lo, index_t hi, int) {
    double z[kColumns];
    Ahead<T> ahead(x, hi, std::min(hi + kColumns, x.d));
    index_t j = lo;
    for (; j + kStrip <= hi; j += kStrip) {
      ahead.ask(ahead.size() * kStrip / kColumns + 1);
      combine_strip(x, c, f, j, z + (j - lo));
    }
    for (; j < hi; ++j) {
      const auto centre = static_cast<double>(c[j]);
      z[j - lo] = centre;
      for (index_t i = 0; i < n; ++i) z[j - lo] += f[i] * (static_cast<double>(x.row[i][j]) - centre);
    }
    for (index_t i = 0; i < hi - lo; ++i) out[lo + i] = static_cast<T>(z[i]);
    double* sums = partial.data() + lo / kColumns * (n + 1);
    for (index_t i = 0; i < n; ++i) sums[i] = square_apart(x.row[i] + lo, z, hi - lo);
    sums[n] = square_apart(out + lo, z, hi - lo);
  });
  std::fill(square, square + n, 0.0);
  double lost = 0;
  for (index_t t = 0; t < tiles; ++t) {
    for (index_t i = 0; i < n; ++i) square[i] += partial[static_cast<std::size_t>(t * (n + 1) + i)];
    lost += partial[static_cast<std::size_t>(t * (n + 1) + n)];
  }
  return std::sqrt(lost);
}

/// Rows k and other, half each (one row: other = k).
template <class T>
void put_rows(Rows<T> x, index_t k, index_t other, T* out, double* combination) {
  std::fill(combination, combination + x.n, 0.0);
  combination[k] += 0.5;
  combination[other] += 0.5;
  if (k == other) std::copy(x.row[k], x.row[k] + x.d, out);
  else
    for (index_t j = 0; j < x.d; ++j) {
      const T a = x.row[k][j], b = x.row[other][j], sum = a + b;
      out[j] = sum - sum == 0 ? sum / 2 : a / 2 + b / 2;
    }
}

/// ||filled_i|| into length: (n).
template <class T>
void row_lengths(const CentredRows<T>& rows, double* length, int threads) {
  for_tasks(rows.x.n, threads, [&](index_t i, int) {
    double y[kColumns], square = 0;
    for (index_t lo = 0; lo < rows.x.d; lo += kColumns) {
      const index_t hi = std::min(lo + kColumns, rows.x.d);
      rows.fill(i, lo, hi, y);
      square += dot(y, y, hi - lo);
    }
    length[i] = std::sqrt(square);
  });
}

/// ||sum_i f_i filled_i / length_i||, rows at the centre excluded.
template <class T>
double pull_of_rows(const CentredRows<T>& rows, const double* length, const std::vector<double>& f, int threads) {
  std::vector<double> square(static_cast<std::size_t>((rows.x.d + kColumns - 1) / kColumns));
  for_tiles(rows.x.d, kColumns, threads, [&](index_t lo, index_t hi, int) {
    double y[kColumns], sum[kColumns] = {};
    for (index_t i = 0; i < rows.x.n; ++i) {
      if (f[i] == 0 || length[i] == 0) continue;
      rows.fill(i, lo, hi, y);
      add_scaled(f[i] / length[i], y, sum, hi - lo);
    }
    square[lo / kColumns] = dot(sum, sum, hi - lo);
  });
  return std::sqrt(std::accumulate(square.begin(), square.end(), 0.0));
}

/// The residual (see GeometricMedianInfo) of the centre, from the rows themselves.
template <class T>
double residual_at_centre(CentredRows<T>& rows, const std::vector<double>& w, int threads) {
  rows.use_scales(threads);
  std::vector<double> length(w.size());
  row_lengths(rows, length.data(), threads);
  double at = 0, total = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    total += w[i];
    if (length[i] == 0) at += w[i];
  }
  return std::max(pull_of_rows(rows, length.data(), w, threads) - at, 0.0) / total;
}

}  // namespace byzadmm::detail
