// Geometric median of the workers: argmin_z sum_i w_i ||x_i - z||.
//
// The rows are read three times whatever the number of iterations: for a centre c (the column-wise median, which
// outliers cannot drag away), for the Gram matrix of x_i - c, and for the result. In between everything happens on n
// numbers: a point is z = c + sum_i v_i yhat_i with yhat_i = (x_i - c) / ||x_i - c||, inner products go through
// H_ij = yhat_i . yhat_j. More rows than columns, or too many for the Gram matrix to pay, are copied once, centred, and
// iterated on directly.
//
// Everything is in double and relative to a power of two near the typical ||x_i - c||, so no scale of the data is
// special. Digits are lost where the solution lies much closer to a row than c does: then that row becomes the centre
// and the Gram matrix is formed again. And a Gram matrix knows lengths only to the square root of rounding if they come
// about by cancellation (rows in few dimensions): asked for more, the copy takes over.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "byzadmm/median.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

/// residual = max(0, ||sum_{x_i != z} w_i (x_i - z) / ||x_i - z|| || - weight of the rows equal to z) / sum_i w_i.
struct GeometricMedianInfo {
  int iterations;
  bool converged;
  double residual;
};

namespace detail {

/// Above this many rows, passing over a copy of them costs less than n^2 d / 2 products.
constexpr index_t kMaxGram = 512;
/// Work (element operations) up to which every row is tried as the minimiser before iterating.
constexpr index_t kTryRowsWork = index_t{1} << 25;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
/// Rounding of the residual that is expected of a well centred problem; a row within kTie of optimal is optimal.
constexpr double kRounding = 8 * kEpsilon, kTie = 5e-14, kFloor = 1e-15;
/// Exponents beyond +-kFar are not told apart: such a row is a mere direction, or coincides.
constexpr int kFar = 500;
constexpr int kMaxRounds = 4;

/// The rows less a centre, in double.  Scaled: (x_i * half - c * half) * scale_i, where plain squares would
/// overflow or vanish; x_i - c = filled * 2^exponent_i either way.
template <class T>
struct CentredRows {
  Rows<T> x;
  std::vector<double> c;      // (d)
  std::vector<double> scale;  // (n)
  std::vector<int> exponent;  // (n)
  bool scaled = false;
  double half = 1;

  explicit CentredRows(Rows<T> rows)
      : x(rows),
        c(static_cast<std::size_t>(rows.d)),
        scale(static_cast<std::size_t>(rows.n), 1.0),
        exponent(static_cast<std::size_t>(rows.n), 0) {}

  void fill(index_t i, index_t lo, index_t hi, double* BYZ_RESTRICT y) const {
    const T* BYZ_RESTRICT row = x.row[i] + lo;
    const double* BYZ_RESTRICT centre = c.data() + lo;
    const index_t count = hi - lo;
    if (!scaled) {
      for (index_t j = 0; j < count; ++j) y[j] = static_cast<double>(row[j]) - centre[j];
      return;
    }
    const double h = half, s = scale[i];
    for (index_t j = 0; j < count; ++j) y[j] = (static_cast<double>(row[j]) * h - centre[j] * h) * s;
  }

  void use_plain() {
    scaled = false;
    half = 1;
    std::fill(scale.begin(), scale.end(), 1.0);
    std::fill(exponent.begin(), exponent.end(), 0);
  }

  /// Largest entry of every filled row in [1/2, 1), as far as powers of two reach.
  void use_scales(int threads) {
    use_plain();
    scaled = true;
    std::vector<double> largest(scale.size());
    const auto measure = [&] {
      for_tasks(x.n, threads, [&](index_t i, int) {
        double most = 0;
        for (index_t j = 0; j < x.d; ++j)
          most = std::max(most, std::abs(static_cast<double>(x.row[i][j]) * half - c[j] * half));
        largest[i] = most;
      });
      return *std::max_element(largest.begin(), largest.end());
    };
    if (!(measure() <= std::numeric_limits<double>::max())) {
      half = 0.5;
      measure();
    }
    for (index_t i = 0; i < x.n; ++i) {
      if (largest[i] == 0) continue;
      int e;
      std::frexp(largest[i], &e);
      e = std::max(e, -1000);  // 2^1074 is no double; squares of 2^-74 do not mind
      scale[i] = std::ldexp(1.0, -e);
      exponent[i] = e + (half < 1 ? 1 : 0);
    }
  }

  bool finite(index_t i) const {
    return std::all_of(x.row[i], x.row[i] + x.d, [](T v) { return std::isfinite(v); });
  }

  bool at_centre(index_t i) const {
    for (index_t j = 0; j < x.d; ++j)
      if (static_cast<double>(x.row[i][j]) != c[j]) return false;
    return true;
  }
};

/// The middle of the exponents of the non-zero sizes: the unit of length is two to it.
inline int middle_exponent(std::vector<int>& exponents) {
  if (exponents.empty()) return 0;
  const auto middle = exponents.begin() + static_cast<std::ptrdiff_t>(exponents.size() / 2);
  std::nth_element(exponents.begin(), middle, exponents.end());
  return *middle;
}

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

// ---- Gram matrix ----------------------------------------------------------------------------------------------------

constexpr index_t kGramRows = 3;  // 3 x 3 sums and 6 operands fit 16 registers

/// lane_sums_ij += y_i y_j lane by lane, for j <= i in whole blocks.  y: (n, stride), width a multiple of the vector
/// length. Every pair is summed in the same order, so equal rows get equal entries.
inline void add_gram_tile(const double* y, index_t n, index_t stride, index_t width, simd::vec<double>* lane_sums) {
  using V = simd::vec<double>;
  constexpr index_t B = kGramRows;
  for (index_t i0 = 0; i0 < n; i0 += B)
    for (index_t j0 = 0; j0 <= i0; j0 += B) {
      const double *a[B], *b[B];
      for (index_t p = 0; p < B; ++p) {
        a[p] = y + std::min(i0 + p, n - 1) * stride;
        b[p] = y + std::min(j0 + p, n - 1) * stride;
      }
      V sum[B][B] = {};
      for (index_t k = 0; k < width; k += simd::lanes<double>) {
        const V b0 = simd::load(b[0] + k), b1 = simd::load(b[1] + k), b2 = simd::load(b[2] + k);
        for (index_t p = 0; p < B; ++p) {
          const V ap = simd::load(a[p] + k);
          sum[p][0] = simd::madd<double>(ap, b0, sum[p][0]);
          sum[p][1] = simd::madd<double>(ap, b1, sum[p][1]);
          sum[p][2] = simd::madd<double>(ap, b2, sum[p][2]);
        }
      }
      for (index_t p = 0; p < B && i0 + p < n; ++p)
        for (index_t q = 0; q < B && j0 + q < n; ++q) lane_sums[(i0 + p) * n + j0 + q] += sum[p][q];
    }
}

/// Columns are cut by n and d alone, so the sums do not depend on the number of threads. A tile of all rows stays in
/// the first cache while every pair of rows passes over it.
struct GramTiling {
  index_t tile, stride, tiles, chunks;

  GramTiling(index_t n, index_t d) {
    constexpr index_t L = simd::lanes<double>, kTileValues = 2560, kLeast = 64;
    tile = std::min(std::max(kTileValues / n, kLeast) / L * L, (d + L - 1) / L * L);
    stride = tile + L;  // off the powers of two, where rows would share cache sets
    tiles = (d + tile - 1) / tile;
    chunks = std::max(std::min({tiles, index_t{16}, d / n}), index_t{1});  // chunks * n^2 <= n d
  }

  /// Doubles that a thread needs: the tile, and the sums of every pair lane by lane.
  index_t scratch(index_t n) const { return n * stride + n * n * simd::lanes<double>; }
};

/// gram: (n, n), both halves.
template <class T>
void gram_matrix(const CentredRows<T>& rows, const GramTiling& cut, double* scratch, double* partial, double* gram,
                 int threads) {
  using V = simd::vec<double>;
  constexpr index_t L = simd::lanes<double>;
  const index_t n = rows.x.n, d = rows.x.d;
  for_tasks(cut.chunks, threads, [&](index_t chunk, int slot) {
    double* sums = scratch + slot * cut.scratch(n);  // first, for its alignment
    double* y = sums + n * n * L;
    V* lane_sums = reinterpret_cast<V*>(sums);
    std::fill(sums, sums + n * n * L, 0.0);
    for (index_t t = chunk * cut.tiles / cut.chunks; t < (chunk + 1) * cut.tiles / cut.chunks; ++t) {
      if (stopping()) return;
      const index_t lo = t * cut.tile, hi = std::min(lo + cut.tile, d), width = (hi - lo + L - 1) / L * L;
      for (index_t i = 0; i < n; ++i) {
        rows.fill(i, lo, hi, y + i * cut.stride);
        std::fill(y + i * cut.stride + (hi - lo), y + i * cut.stride + width, 0.0);
      }
      add_gram_tile(y, n, cut.stride, width, lane_sums);
    }
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j <= i; ++j) partial[(chunk * n + i) * n + j] = simd::sum_lanes<double>(lane_sums[i * n + j]);
  });
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (index_t chunk = 0; chunk < cut.chunks; ++chunk) sum += partial[(chunk * n + i) * n + j];
      gram[i * n + j] = gram[j * n + i] = sum;
    }
}

// ---- The two ways to hold points ------------------------------------------------------------------------------------
//
// Both offer the same operations on points (vectors of `dim` numbers) and rows y_i, in units of 2^unit:
//   dual(p, out)         the vector with <p, q> = out . q
//   along(p, dual, out)  out_i = <y_i, p>
//   combine(f, out)      sum_i f_i y_i
//   distances(...)       ||y_i - z||, with noise(d, zz): their relative rounding error
//   row_distances(k, d)  the same from row k

/// Coefficients v of unit rows, metric H.
template <class T>
class GramSpace {
 public:
  index_t n, dim;
  int unit = 0;
  std::vector<int> shift;  // y_i = filled row * 2^shift_i

  GramSpace(CentredRows<T>& rows, int threads)
      : n(rows.x.n),
        dim(n),
        shift(static_cast<std::size_t>(n)),
        rows_(rows),
        threads_(threads),
        cut_(n, rows.x.d),
        h_(static_cast<std::size_t>(n * n)),
        rho_(static_cast<std::size_t>(n)),
        partial_(static_cast<std::size_t>(cut_.chunks * n * n)),
        scratch_(
            static_cast<std::size_t>(std::min<index_t>(threads, cut_.chunks) * cut_.scratch(n) / simd::lanes<double>)) {
  }

  /// False if a row is not finite: its square tells.
  bool build() {
    rows_.use_plain();
    gram_matrix(rows_, cut_, reinterpret_cast<double*>(scratch_.data()), partial_.data(), h_.data(), threads_);
    for (index_t i = 0; i < n; ++i)
      if (!std::isfinite(h_[i * n + i]) && !rows_.finite(i)) return false;
    // Squares of floats fit a double with room to spare; those of doubles need a look.
    if (sizeof(T) == 8 && !squares_fit()) {
      rows_.use_scales(threads_);
      gram_matrix(rows_, cut_, reinterpret_cast<double*>(scratch_.data()), partial_.data(), h_.data(), threads_);
    }
    normalise();
    return true;
  }

  void dual(const double* p, double* BYZ_RESTRICT out) const {
    std::fill(out, out + n, 0.0);
    for (index_t j = 0; j < n; ++j) add_scaled(p[j], h_.data() + j * n, out, n);
  }
  void along(const double*, const double* dual, double* out) const {
    for (index_t i = 0; i < n; ++i) out[i] = rho_[i] * dual[i];
  }
  void combine(const double* f, double* out) {
    for (index_t i = 0; i < n; ++i) out[i] = rho_[i] * f[i];
  }
  void distances(const double*, const double* dual, double zz, double* d) const {
    for (index_t i = 0; i < n; ++i) d[i] = distance(rho_[i], dual[i], zz);
  }
  void row_distances(index_t k, double* d) const {
    for (index_t i = 0; i < n; ++i) {
      d[i] = i == k ? 0.0 : distance(rho_[i], rho_[k] * h_[k * n + i], rho_[k] * rho_[k]);
      // Distances this small are rounding: only the rows themselves can tell whether they are equal.
      if (d[i] < 1e-3 * rho_[k] && i != k) d[i] = same_row(i, k) ? 0.0 : std::max(d[i], kEpsilon * rho_[k]);
    }
  }
  double row_square(index_t k) const { return rho_[k] * rho_[k]; }
  static double noise(double d, double zz) { return kRounding * (1 + zz / (d * d)); }
  /// What is left of ||p|| when its terms cancel: p'Hp is known to rounding, its root to far less.
  double blur(const double* p) const { return std::sqrt(kRounding * dot(p, p, n)); }
  bool all_rows_first() const { return true; }

 private:
  /// sqrt((rho - t)^2 + (zz - t^2)), t = yhat . z: along the row and across it, so that a huge rho does no harm.
  static double distance(double rho, double t, double zz) {
    const double gap = rho - t;
    return std::sqrt(gap * gap + std::max(zz - t * t, 0.0));
  }

  bool same_row(index_t i, index_t k) const {
    return std::equal(rows_.x.row[i], rows_.x.row[i] + rows_.x.d, rows_.x.row[k]);
  }

  bool squares_fit() const {
    for (index_t i = 0; i < n; ++i) {
      const double square = h_[i * n + i];
      if (square == 0 ? !rows_.at_centre(i) : !(square > 1e-270 && square < 1e300)) return false;
    }
    return true;
  }

  /// rho_i = ||y_i|| in units of 2^unit, H from the Gram matrix.
  void normalise() {
    std::vector<double> norm(static_cast<std::size_t>(n));
    std::vector<int> exponents;
    for (index_t i = 0; i < n; ++i) {
      norm[i] = std::sqrt(h_[i * n + i]);
      if (norm[i] > 0) exponents.push_back(std::ilogb(norm[i]) + rows_.exponent[i]);
    }
    unit = middle_exponent(exponents);
    for (index_t i = 0; i < n; ++i) {
      // A row at the centre has no exponent to speak of.
      shift[i] = norm[i] > 0 ? std::min(rows_.exponent[i] - unit, kFar - std::ilogb(norm[i])) : 0;
      rho_[i] = std::ldexp(norm[i], shift[i]);
    }
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) {
        double& h = h_[i * n + j];
        if (i == j) continue;
        h = norm[i] > 0 && norm[j] > 0 ? h / (norm[i] * norm[j]) : 0.0;
      }
    for (index_t i = 0; i < n; ++i) h_[i * n + i] = norm[i] > 0 ? 1.0 : 0.0;
  }

  CentredRows<T>& rows_;
  int threads_;
  GramTiling cut_;
  std::vector<double> h_, rho_, partial_;
  std::vector<simd::vec<double>> scratch_;  // aligned for vectors
};

/// Plain coordinates and a centred copy of the rows: for n > d, and for many rows.
template <class T>
class CopySpace {
 public:
  index_t n, dim;
  int unit = 0;
  std::vector<int> shift;

  CopySpace(CentredRows<T>& rows, int threads)
      : n(rows.x.n),
        dim(rows.x.d),
        shift(static_cast<std::size_t>(n)),
        rows_(rows),
        threads_(n * dim < kSerialWork ? 1 : threads),
        chunks_(std::max(std::min({index_t{64}, n, n * dim >> 17}), index_t{1})),
        y_(static_cast<std::size_t>(n * dim)),
        partial_(static_cast<std::size_t>(chunks_ * dim)) {}

  /// False if a row is not finite.
  bool build() {
    for (index_t i = 0; i < n; ++i)
      if (!rows_.finite(i)) return false;
    rows_.use_scales(threads_);
    std::vector<int> exponents;
    const auto is_zero = [&](index_t i) { return rows_.scale[i] == 1 && rows_.exponent[i] == 0 && rows_.at_centre(i); };
    for (index_t i = 0; i < n; ++i)
      if (!is_zero(i)) exponents.push_back(rows_.exponent[i]);
    unit = middle_exponent(exponents);
    for (index_t i = 0; i < n; ++i) shift[i] = std::min(rows_.exponent[i] - unit, kFar);
    for_tasks(chunks_, threads_, [&](index_t chunk, int) {
      for (index_t i = first(chunk); i < first(chunk + 1); ++i) {
        double* y = y_.data() + i * dim;
        rows_.fill(i, 0, dim, y);
        const double factor = std::ldexp(1.0, shift[i]);
        for (index_t j = 0; j < dim; ++j) y[j] *= factor;
      }
    });
    return true;
  }

  void dual(const double* p, double* out) const { std::copy(p, p + dim, out); }
  void along(const double* p, const double*, double* out) const {
    for_tasks(chunks_, threads_, [&](index_t chunk, int) {
      for (index_t i = first(chunk); i < first(chunk + 1); ++i) out[i] = dot(y_.data() + i * dim, p, dim);
    });
  }
  void combine(const double* f, double* out) {
    for_tasks(chunks_, threads_, [&](index_t chunk, int) {
      double* sum = partial_.data() + chunk * dim;
      std::fill(sum, sum + dim, 0.0);
      for (index_t i = first(chunk); i < first(chunk + 1); ++i) add_scaled(f[i], y_.data() + i * dim, sum, dim);
    });
    std::fill(out, out + dim, 0.0);
    for (index_t chunk = 0; chunk < chunks_; ++chunk) add_scaled(1.0, partial_.data() + chunk * dim, out, dim);
  }
  void distances(const double* z, const double*, double, double* d) const {
    for_tasks(chunks_, threads_, [&](index_t chunk, int) {
      for (index_t i = first(chunk); i < first(chunk + 1); ++i) d[i] = distance(y_.data() + i * dim, z);
    });
  }
  void row_distances(index_t k, double* d) const { distances(y_.data() + k * dim, nullptr, 0, d); }
  double row_square(index_t k) const { return dot(y_.data() + k * dim, y_.data() + k * dim, dim); }
  static double noise(double d, double zz) { return kRounding * (1 + std::sqrt(zz) / d); }
  static double blur(const double*) { return 0; }
  bool all_rows_first() const { return n * dim <= kTryRowsWork / n; }

 private:
  index_t first(index_t chunk) const { return chunk * n / chunks_; }

  double distance(const double* BYZ_RESTRICT y, const double* BYZ_RESTRICT z) const {
    constexpr index_t L = simd::lanes<double>;
    simd::vec<double> sums{};
    index_t j = 0;
    for (; j + L <= dim; j += L) {
      const simd::vec<double> gap = simd::load(y + j) - simd::load(z + j);
      sums = simd::madd<double>(gap, gap, sums);
    }
    double sum = simd::sum_lanes<double>(sums);
    for (; j < dim; ++j) sum += (y[j] - z[j]) * (y[j] - z[j]);
    return std::sqrt(sum);
  }

  CentredRows<T>& rows_;
  int threads_;
  index_t chunks_;
  std::vector<double> y_, partial_;
};

// ---- The search -----------------------------------------------------------------------------------------------------

/// point: see MedianSearch::shares.  row, pair: the row k, the midpoint of rows k and other.  recentre: more digits are
/// needed around row k.  blurred: more than the space has.
enum class Found { point, row, pair, recentre, blurred };

/// Newton's method on f(z) = sum_i w_i ||y_i - z|| over either space, after a look at the rows, where f has its kinks.
template <class Space>
class MedianSearch {
 public:
  index_t k = 0, other = 0;
  int iterations = 0;
  double residual = 0;

  /// w: (n), largest value 1.
  MedianSearch(Space& space, const std::vector<double>& w, double tol)
      : space_(space),
        w_(w),
        n_(space.n),
        dim_(space.dim),
        tol_(tol),
        noise_limit_(std::max(0.1 * tol, 1e-13)),
        numbers_(static_cast<std::size_t>(4 * n_ + 14 * dim_)) {
    for (double wi : w) total_ += wi;
    double* next = numbers_.data();
    const auto take = [&next](index_t count) { return next += count, next - count; };
    for (State* s : {&here_, &then_}) {
      s->z = take(dim_), s->z_dual = take(dim_), s->delta = take(dim_), s->delta_dual = take(dim_);
      s->d = take(n_), s->share = take(n_);
    }
    step_ = take(dim_), r_ = take(dim_), p_ = take(dim_), p_dual_ = take(dim_), q_ = take(dim_), q_dual_ = take(dim_);
    tested_.resize(static_cast<std::size_t>(n_));
  }

  /// One search around the current centre (z = 0), at most max_iter steps in all.
  Found run(int max_iter, bool may_recentre) {
    std::fill(tested_.begin(), tested_.end(), char{0});
    if (space_.all_rows_first()) {
      const Found found = try_rows(may_recentre);
      if (found != Found::point) return found;
    }
    std::fill(here_.z, here_.z + dim_, 0.0);
    evaluate(here_);
    while (true) {
      if (!tested_[here_.nearest]) {
        const Found found = try_row(here_.nearest, may_recentre, kTie);
        if (found != Found::point) return found;
      }
      residual = here_.residual;
      if (residual <= kFloor || iterations >= max_iter) break;
      if (may_recentre && here_.noise > noise_limit_ && residual <= std::max(here_.noise, tol_)) break;
      if (here_.blur > tol_ && residual <= 4 * here_.blur) break;
      newton_step(here_);
      if (residual <= tol_ && norm(step_) <= tol_ * total_ / here_.pull) break;
      ++iterations;
      if (!move()) break;
    }
    if (may_recentre && here_.noise > noise_limit_) {
      k = here_.nearest;
      return Found::recentre;
    }
    if (residual > tol_ && here_.blur > kFloor && iterations < max_iter) return Found::blurred;
    return close_row();
  }

  /// Convex weights of the rows whose combination is the point found.
  const double* shares() const { return here_.share; }

 private:
  /// f and its derivatives at z.  With a_i = w_i / d_i: pull = sum a_i, share_i = a_i / pull,
  /// delta = sum share_i y_i - z, so that -grad f = pull * delta.  Rows at z are left out; `at` is their weight.
  /// noise: rounding error of the residual that recentring would cure; blur: that it would not.
  struct State {
    double *z, *z_dual, *delta, *delta_dual, *d, *share;
    double zz, value, pull, at, force, residual, noise, blur;
    index_t nearest;
  };

  double inner(const double* p, const double* dual) const { return dot(p, dual, dim_); }
  /// Of a vector whose dual is not at hand.
  double norm(const double* p) {
    space_.dual(p, q_dual_);
    return std::sqrt(std::max(inner(p, q_dual_), 0.0));
  }

  void evaluate(State& s) {
    space_.dual(s.z, s.z_dual);
    s.zz = std::max(inner(s.z, s.z_dual), 0.0);
    space_.distances(s.z, s.z_dual, s.zz, s.d);
    differentiate(s, s.zz == 0);
  }

  /// The rest of a state, from its z and d.  exact: distances of 0 are meant, not rounded.
  void differentiate(State& s, bool exact) {
    constexpr double kNear = 0x1p-500;
    s.value = s.pull = s.at = s.noise = 0;
    s.nearest = 0;
    for (index_t i = 0; i < n_; ++i) {
      const double d = s.d[i];
      if (d < s.d[s.nearest]) s.nearest = i;
      s.value += w_[i] * d;
      const bool apart = d > kNear;
      s.share[i] = apart ? w_[i] / d : 0.0;
      s.pull += s.share[i];
      if (!apart) s.at += w_[i];
      if (apart || !exact) s.noise += w_[i] * (apart ? std::min(space_.noise(d, s.zz), 1.0) : 1.0);
    }
    s.noise /= total_;
    if (s.pull == 0) {  // every row is here
      s.force = s.residual = s.blur = 0;
      return;
    }
    for (index_t i = 0; i < n_; ++i) s.share[i] /= s.pull;
    space_.combine(s.share, s.delta);
    for (index_t j = 0; j < dim_; ++j) s.delta[j] -= s.z[j];
    space_.dual(s.delta, s.delta_dual);
    s.force = s.pull * std::sqrt(std::max(inner(s.delta, s.delta_dual), 0.0));
    s.blur = s.pull * space_.blur(s.delta) / total_;
    s.residual = std::max(std::max(s.force - s.at, 0.0) / total_, s.at > 0 ? 0.0 : s.blur);
  }

  /// The state at row i: how far f is from having its minimum there (negative: a sharp minimum).
  double excess_at_row(index_t i, State& s) {
    std::fill(s.share, s.share + n_, 0.0);
    s.share[i] = 1;
    space_.combine(s.share, s.z);
    s.zz = space_.row_square(i);
    space_.row_distances(i, s.d);
    differentiate(s, true);
    tested_[i] = 1;
    return (s.force - s.at) / total_;
  }

  Found try_row(index_t i, bool may_recentre, double slack) {
    const double excess = excess_at_row(i, then_);
    if (excess > std::max(then_.noise, slack)) return Found::point;
    k = i;
    residual = std::max(excess, 0.0);
    // Undecided for lack of digits? Not if row i is the centre itself.
    const bool unsure = std::abs(excess) <= then_.noise && then_.noise > kTie;
    return unsure && may_recentre && then_.zz > 0 ? Found::recentre : Found::row;
  }

  /// Is one of the rows with the least f the minimiser, or are two of them, and all between?
  Found try_rows(bool may_recentre) {
    std::vector<double> value(static_cast<std::size_t>(n_));
    for (index_t i = 0; i < n_; ++i) {
      space_.row_distances(i, then_.d);
      value[i] = dot(then_.d, w_.data(), n_);
    }
    const double least = *std::min_element(value.begin(), value.end());
    std::vector<index_t> tied;
    for (index_t i = 0; i < n_; ++i) {
      tested_[i] = 1;
      if (value[i] > least * (1 + 1e-10)) continue;
      const Found found = try_row(i, may_recentre, kTie);
      if (found == Found::recentre) return found;
      if (found == Found::row) {
        if (then_.force - then_.at < -kTie * total_) return found;
        tied.push_back(i);
      }
    }
    if (tied.empty()) return Found::point;
    k = other = tied.front();
    space_.row_distances(k, then_.d);
    for (index_t i : tied)
      if (then_.d[i] > then_.d[other]) other = i;
    return other != k ? Found::pair : Found::row;
  }

  /// The row next to the solution, if it cannot be told from it within the tolerance.
  Found close_row() {
    const index_t i = here_.nearest;
    if (here_.residual > tol_ || here_.d[i] * here_.pull * (1 - here_.share[i]) > tol_ * total_) return Found::point;
    return try_row(i, false, std::max(tol_, kTie)) == Found::row ? Found::row : Found::point;
  }

  /// step = -(hess f)^{-1} grad f by conjugate gradients: (I - sum_i share_i u_i u_i') step = delta, with
  /// u_i = (z - y_i) / d_i.
  /// The sum has trace 1, hence at most one eigenvalue above 1/2: the iteration ends soon, however thin the data.
  void newton_step(const State& s) {
    constexpr int kMaxSteps = 40;
    std::copy(s.delta, s.delta + dim_, step_);
    if (s.at > 0) {  // at a kink: the step of Vardi and Zhang
      for (index_t j = 0; j < dim_; ++j) step_[j] *= 1 - s.at / s.force;
      return;
    }
    std::vector<double>& r_dual = cg_dual_;
    std::vector<double>& f = cg_rows_;
    r_dual.assign(s.delta_dual, s.delta_dual + dim_);
    f.resize(static_cast<std::size_t>(n_));
    std::copy(s.delta, s.delta + dim_, r_);
    std::copy(s.delta, s.delta + dim_, p_);
    std::copy(s.delta_dual, s.delta_dual + dim_, p_dual_);
    const double start = inner(r_, r_dual.data());
    double rr = start;
    bool moved = false;
    for (int it = 0; it < kMaxSteps && rr > 1e-24 * start; ++it) {
      space_.along(p_, p_dual_, f.data());
      const double zp = inner(s.z, p_dual_);
      double sum = 0;
      for (index_t i = 0; i < n_; ++i) {
        f[i] = s.share[i] * ((zp - f[i]) / s.d[i]) / s.d[i];
        sum += f[i];
      }
      space_.combine(f.data(), q_);
      for (index_t j = 0; j < dim_; ++j) q_[j] += p_[j] - sum * s.z[j];
      const double pq = inner(q_, p_dual_);
      if (!(pq > 4 * kEpsilon * inner(p_, p_dual_))) break;  // flat: rows on a line
      const double alpha = rr / pq;
      if (!moved) std::fill(step_, step_ + dim_, 0.0);
      moved = true;
      space_.dual(q_, q_dual_);
      add_scaled(alpha, p_, step_, dim_);
      add_scaled(-alpha, q_, r_, dim_);
      add_scaled(-alpha, q_dual_, r_dual.data(), dim_);
      const double after = std::max(inner(r_, r_dual.data()), 0.0), beta = after / rr;
      rr = after;
      for (index_t j = 0; j < dim_; ++j) p_[j] = r_[j] + beta * p_[j];
      for (index_t j = 0; j < dim_; ++j) p_dual_[j] = r_dual[j] + beta * p_dual_[j];
    }
  }

  /// here += t * step with t = 1 if that halves the gradient, otherwise to where the slope along the step is nearly
  /// gone. Slopes decide where differences of f are lost in rounding. False if there is no way down.
  bool move() {
    const double start = -here_.pull * inner(step_, here_.delta_dual);
    if (!(start < 0)) return false;
    const double ceiling = here_.value * (1 + 1e-14);
    double low = 0, high = 0, t = 1;  // high = 0: none yet
    bool found = false;
    for (int trial = 0; trial < 60; ++trial) {
      go(t);
      const double slope = -then_.pull * inner(step_, then_.delta_dual);
      const bool below = then_.value <= ceiling;
      found = below && (then_.residual <= 0.5 * here_.residual || std::abs(slope) <= -0.1 * start);
      if (found) break;
      (slope < 0 && below ? low : high) = t;
      if (high > 0 && high - low <= 1e-6 * high) break;
      t = high > 0 ? 0.5 * (low + high) : 2 * t;
    }
    if (!found) {
      if (low == 0) return false;
      go(low);
    }
    std::swap(here_, then_);
    return true;
  }

  void go(double t) {
    std::copy(here_.z, here_.z + dim_, then_.z);
    add_scaled(t, step_, then_.z, dim_);
    evaluate(then_);
  }

  Space& space_;
  const std::vector<double>& w_;
  index_t n_, dim_;
  double tol_, noise_limit_, total_ = 0;
  std::vector<double> numbers_, cg_dual_, cg_rows_;
  std::vector<char> tested_;
  State here_{}, then_{};
  double *step_, *r_, *p_, *p_dual_, *q_, *q_dual_;
};

template <class T>
BYZ_ALWAYS_INLINE simd::vec<double> load_double(const T* p) {
  if constexpr (sizeof(T) == 8) return simd::load(p);
  else {
    half_vec<T> v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, simd::vec<double>);
  }
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
      const V x = load_double(rows.x.row[i] + at + v * simd::lanes<double>);
      total[v] = simd::madd<double>(factor, x - centre[v], total[v]);
    }
  }
  for (int v = 0; v < 4; ++v) simd::store(sum + v * simd::lanes<double>, total[v]);
}

/// out = c + 2^unit sum_i share_i 2^shift_i filled_i, which is sum_i share_i x_i without its cancellation.
template <class T>
void combine_rows(const CentredRows<T>& rows, const double* share, const std::vector<int>& shift, int unit, T* out,
                  int threads) {
  constexpr index_t kTile = 512;
  const index_t n = rows.x.n;
  std::vector<double> f(static_cast<std::size_t>(n));
  for (index_t i = 0; i < n; ++i) f[i] = std::ldexp(share[i], shift[i]);
  // In two factors, for one may be out of range.
  const double up = std::ldexp(1.0, unit / 2), up_too = std::ldexp(rows.half, unit - unit / 2), twice = 1 / rows.half;
  for_tiles(rows.x.d, kTile, threads, [&](index_t lo, index_t hi, int) {
    double y[kTile], sum[kTile] = {};
    const index_t whole = rows.scaled ? lo : lo + (hi - lo) / kStrip * kStrip;
    for (index_t at = lo; at < whole; at += kStrip) add_strip(rows, f.data(), at, sum + (at - lo));
    for (index_t i = 0; i < n && whole < hi; ++i) {
      rows.fill(i, whole, hi, y);
      add_scaled(f[i], y, sum + (whole - lo), hi - whole);
    }
    constexpr double kMost = std::numeric_limits<double>::max();
    for (index_t j = lo; j < hi; ++j) {
      const double z = (rows.c[j] * rows.half + sum[j - lo] * up * up_too) * twice;
      out[j] = static_cast<T>(std::min(std::max(z, -kMost), kMost));
    }
  });
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

/// d = 1: the weighted median, the midpoint where half of the weight lies on either side.
template <class T>
void median_on_line(Rows<T> x, const std::vector<double>& w, T* out, double* combination) {
  std::vector<index_t> order(static_cast<std::size_t>(x.n));
  for (index_t i = 0; i < x.n; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) { return x.row[a][0] < x.row[b][0]; });
  double total = 0, below = 0;
  for (index_t i : order) total += w[i];
  const double slack = kTie * total;
  index_t at = 0;
  while (at + 1 < x.n && below + w[order[at]] < 0.5 * total - slack) below += w[order[at++]];
  const bool even = at + 1 < x.n && below + w[order[at]] <= 0.5 * total + slack;
  put_rows(x, order[at], order[even ? at + 1 : at], out, combination);
}

/// The whole of geometric_median in one space; false if that has not digits enough.  Goes on counting info.iterations.
template <class Space, class T>
bool search_median(CentredRows<T>& rows, const std::vector<double>& w, double tol, int max_iter, T* out,
                   double* combination, int threads, GeometricMedianInfo& info) {
  Space space(rows, threads);
  MedianSearch<Space> search(space, w, tol);
  search.iterations = info.iterations;
  for (int round = 1;; ++round) {
    if (!space.build()) {
      info = {-1, false, std::numeric_limits<double>::quiet_NaN()};
      return true;
    }
    const Found found = search.run(max_iter, round < kMaxRounds);
    info = {search.iterations, true, search.residual};
    switch (found) {
      case Found::recentre: std::copy(rows.x.row[search.k], rows.x.row[search.k] + rows.x.d, rows.c.begin()); break;
      case Found::blurred: return false;
      case Found::row:
      case Found::pair:
        put_rows(rows.x, search.k, found == Found::pair ? search.other : search.k, out, combination);
        return true;
      case Found::point:
        std::copy(search.shares(), search.shares() + rows.x.n, combination);
        combine_rows(rows, combination, space.shift, space.unit, out, threads);
        info.converged = search.residual <= std::max(tol, 10 * kFloor);
        return true;
    }
  }
}

}  // namespace detail

namespace detail {

/// The row with the least sum of distances to the others, judged by some columns: a centre near the solution unless
/// the data hides it from the sample, and then the search recentres.
template <class T>
index_t central_row(Rows<T> x) {
  constexpr index_t kBlock = 64, kBlocks = 4;
  index_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> gaps(static_cast<std::size_t>(x.n * x.n));
  for (index_t block = 0; block < kBlocks; ++block) {
    const index_t lo = x.d <= kBlock * kBlocks ? block * kBlock : block * (x.d / kBlocks);
    const index_t hi = std::min(lo + kBlock, x.d);
    for (index_t i = 0; i < x.n && lo < hi; ++i)
      for (index_t k = 0; k < i; ++k) {
        double sum = 0;
        for (index_t j = lo; j < hi; ++j) {
          const double gap = static_cast<double>(x.row[i][j]) - static_cast<double>(x.row[k][j]);
          sum += gap * gap;
        }
        gaps[i * x.n + k] += sum;
        gaps[k * x.n + i] += sum;
      }
  }
  for (index_t i = 0; i < x.n; ++i) {
    double sum = 0;
    for (index_t k = 0; k < x.n; ++k) sum += std::sqrt(gaps[i * x.n + k]);
    if (sum < least) {
      least = sum;
      best = i;
    }
  }
  return best;
}

}  // namespace detail

/// out = argmin_z sum_i weight_i ||x_i - z||; a row that is the minimiser is copied, the middle of a segment of
/// minimisers is taken.  x: (n, d), n >= 1, d >= 1; weight: (n) finite, > 0, or nullptr for equal ones;
/// out: (d), distinct from x; combination: (n), convex weights with out = sum_i combination_i x_i.  tol bounds the
/// residual and the error relative to the (harmonic) mean distance to the rows.  Same bits for any `threads`.
/// A row that is not finite ends it: iterations = -1, and out is not to be used.
template <class T>
BYZ_NOINLINE GeometricMedianInfo geometric_median(Rows<T> x, const double* weight, double tol, int max_iter, T* out,
                                                  double* combination, int threads) {
  std::vector<double> w(static_cast<std::size_t>(x.n), 1.0);
  if (weight != nullptr) {
    // Relative to the largest, their sum is finite.
    const double most = *std::max_element(weight, weight + x.n);
    for (index_t i = 0; i < x.n; ++i) w[i] = weight[i] / most;
  }
  if (x.d == 1 || x.n == 1) {
    const detail::CentredRows<T> rows(x);
    for (index_t i = 0; i < x.n; ++i)
      if (!rows.finite(i)) return {-1, false, std::numeric_limits<double>::quiet_NaN()};
    if (x.n == 1) detail::put_rows(x, index_t{0}, index_t{0}, out, combination);
    else detail::median_on_line(x, w, out, combination);
    return {0, true, 0.0};
  }
  detail::CentredRows<T> rows(x);
  GeometricMedianInfo info{0, false, 1.0};
  if (x.n <= x.d && x.n <= detail::kMaxGram) {
    const T* centre = x.row[detail::central_row(x)];
    std::copy(centre, centre + x.d, rows.c.begin());
    if (detail::search_median<detail::GramSpace<T>>(rows, w, tol, max_iter, out, combination, threads, info))
      return info;
  } else {
    median(x, Even::mid, out, threads);
    std::copy(out, out + x.d, rows.c.begin());
  }
  detail::search_median<detail::CopySpace<T>>(rows, w, tol, max_iter, out, combination, threads, info);
  return info;
}

}  // namespace byzadmm
