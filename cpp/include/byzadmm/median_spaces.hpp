// The two ways in which the geometric median holds points: by a Gram matrix, or in coordinates.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "byzadmm/centred_rows.hpp"
#include "byzadmm/distances.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"

namespace byzadmm::detail {

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
//   row_distances(k, d)  the same from row k; 0 for rows that equal it and no others
//   along_row(k, out)    out_i = <y_i, y_k>
//   measured()           whether distances are measured in the end, so that their noise does not matter here
// The solution is of the size of the unit. Rows farther than 2^kFar are moved there: from it they are mere directions.

/// Exponents up to which lengths are kept: squares and sums of them are in range.
constexpr int kFar = 500;
/// Relative rounding error of a length, and what is usual among float32 numbers.
constexpr double kRounding = 8 * kEpsilon, kQuickRounding = 0x1p-20;
/// Work (element operations) up to which every row is tried as the minimiser before iterating.
constexpr index_t kTryRowsWork = index_t{1} << 25;

/// A row this close to row k compared with the length of y_k may differ from it by rounding alone: only the rows
/// themselves can tell.
template <class T>
void settle_row_distances(const CentredRows<T>& rows, index_t k, double length, double* d) {
  d[k] = 0;
  for (index_t i = 0; i < rows.x.n; ++i)
    if (i != k && d[i] <= 1e-3 * length) d[i] = rows.same(i, k) ? 0.0 : std::max(d[i], kEpsilon * length);
}

/// Coefficients v of unit rows, metric H.
template <class T>
class GramSpace {
 public:
  index_t n, dim;
  int unit = 0;
  std::vector<int> size, shift;  // (n) exponent of ||x_i - c||; y_i = filled row * 2^shift_i

  GramSpace(CentredRows<T>& rows, int threads)
      : n(rows.x.n),
        dim(n),
        size(static_cast<std::size_t>(n)),
        shift(size),
        rows_(rows),
        threads_(threads),
        h_(static_cast<std::size_t>(n * n)),
        rho_(static_cast<std::size_t>(n)) {}

  /// From products of float32 numbers, whose rounding is not bounded: what is found in this space is to be measured.
  /// False if a square is out of range.  centre: (d) instead of that of the rows.
  bool build_quickly(const T* centre, const std::vector<double>& w) {
    pair_sums<true>(rows_.x, centre, h_.data(), threads_);
    for (index_t i = 0; i < n; ++i) {
      const double square = h_[i * n + i];
      if (!is_safe<T>(square) && (square != 0 || !rows_.same_as(i, centre))) return false;
      for (index_t j = 0; j < i; ++j) h_[i * n + j] = h_[j * n + i];
    }
    rounding_ = kQuickRounding;
    normalise(w);
    return true;
  }
  bool measured() const { return rounding_ == kQuickRounding; }

  /// False if a row is not finite: its square tells.  w: (n).
  bool build(const std::vector<double>& w) {
    rows_.use_plain();
    form_matrix();
    for (index_t i = 0; i < n; ++i)
      if (!std::isfinite(h_[i * n + i]) && !rows_.finite(i)) return false;
    // Squares of floats fit a double with room to spare; those of doubles need a look.
    if (sizeof(T) == 8 && !squares_fit()) {
      rows_.use_scales(threads_);
      form_matrix();
    }
    normalise(w);
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
    for (index_t i = 0; i < n; ++i) d[i] = distance(rho_[i], rho_[k] * h_[k * n + i], rho_[k] * rho_[k]);
    settle_row_distances(rows_, k, rho_[k], d);
  }
  void along_row(index_t k, double* out) const {
    for (index_t i = 0; i < n; ++i) out[i] = rho_[k] * h_[k * n + i] * rho_[i];
  }
  double row_square(index_t k) const { return rho_[k] * rho_[k]; }
  double noise(double d, double zz) const { return rounding_ * (1 + zz / (d * d)); }
  /// What is left of ||p|| when its terms cancel: p'Hp is known to rounding, its root to far less.
  double blur(const double* p) const { return std::sqrt(rounding_ * dot(p, p, n)); }
  static bool all_rows_first() { return true; }
  /// Times that the Gram matrix is formed before the copy takes over.
  static constexpr int kMaxRounds = 4;

 private:
  /// sqrt((rho - t)^2 + (zz - t^2)), t = yhat . z: along the row and across it, so that a huge rho does no harm.
  static double distance(double rho, double t, double zz) {
    const double gap = rho - t;
    return std::sqrt(gap * gap + std::max(zz - t * t, 0.0));
  }

  void form_matrix() {
    const GramTiling cut(n, rows_.x.d);
    const index_t slots = std::min<index_t>(threads_, cut.chunks);
    partial_.resize(static_cast<std::size_t>(cut.chunks * n * n));
    scratch_.resize(static_cast<std::size_t>(slots * cut.scratch(n) / simd::lanes<double>));
    gram_matrix(rows_, cut, reinterpret_cast<double*>(scratch_.data()), partial_.data(), h_.data(), threads_);
  }

  bool squares_fit() const {
    for (index_t i = 0; i < n; ++i) {
      const double square = h_[i * n + i];
      if (square == 0 ? !rows_.at_centre(i) : !(square > 1e-270 && square < 1e300)) return false;
    }
    return true;
  }

  /// rho_i = ||y_i|| in units of 2^unit, H from the Gram matrix.
  void normalise(const std::vector<double>& w) {
    std::vector<double> norm(static_cast<std::size_t>(n));
    for (index_t i = 0; i < n; ++i) {
      norm[i] = std::sqrt(h_[i * n + i]);
      size[i] = norm[i] > 0 ? std::ilogb(norm[i]) + rows_.exponent[i] : kAtCentre;
    }
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) {
        double& h = h_[i * n + j];
        if (i == j) continue;
        h = norm[i] > 0 && norm[j] > 0 ? h / (norm[i] * norm[j]) : 0.0;
      }
    for (index_t i = 0; i < n; ++i) h_[i * n + i] = norm[i] > 0 ? 1.0 : 0.0;
    std::vector<double> along(static_cast<std::size_t>(n));
    unit = balanced_exponent(size, w, [&](const std::vector<double>& f) {
      dual(f.data(), along.data());
      return std::sqrt(std::max(dot(f.data(), along.data(), n), 0.0));
    });
    for (index_t i = 0; i < n; ++i) {
      shift[i] = norm[i] > 0 ? std::min(rows_.exponent[i] - unit, kFar - std::ilogb(norm[i])) : 0;
      rho_[i] = std::ldexp(norm[i], shift[i]);
    }
  }

  CentredRows<T>& rows_;
  int threads_;
  double rounding_ = kRounding;
  std::vector<double> h_, rho_, partial_;
  std::vector<simd::vec<double>> scratch_;  // aligned for vectors
};

/// Plain coordinates and a centred copy of the rows: for n > d, and for many rows.
template <class T>
class CopySpace {
 public:
  index_t n, dim;
  int unit = 0;
  std::vector<int> size, shift;

  CopySpace(CentredRows<T>& rows, int threads)
      : n(rows.x.n),
        dim(rows.x.d),
        size(static_cast<std::size_t>(n)),
        shift(size),
        rows_(rows),
        threads_(n * dim < kSerialWork ? 1 : threads),
        chunks_(std::max(std::min({index_t{64}, n, n * dim >> 17}), index_t{1})),
        y_(static_cast<std::size_t>(n * dim)),
        partial_(static_cast<std::size_t>(chunks_ * dim)) {}

  /// False if a row is not finite.  w: (n).
  bool build(const std::vector<double>& w) {
    for (index_t i = 0; i < n; ++i)
      if (!rows_.finite(i)) return false;
    rows_.use_scales(threads_);
    size = rows_.exponent;
    std::vector<double> length;
    unit = balanced_exponent(size, w, [&](const std::vector<double>& f) {
      if (length.empty()) {
        length.resize(f.size());
        row_lengths(rows_, length.data(), threads_);
      }
      return pull_of_rows(rows_, length.data(), f, threads_);
    });
    for (index_t i = 0; i < n; ++i) shift[i] = std::min(size[i] - unit, kFar);
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
  void row_distances(index_t k, double* d) const {
    distances(y_.data() + k * dim, nullptr, 0, d);
    settle_row_distances(rows_, k, std::sqrt(row_square(k)), d);
  }
  void along_row(index_t k, double* out) const { along(y_.data() + k * dim, nullptr, out); }
  double row_square(index_t k) const { return dot(y_.data() + k * dim, y_.data() + k * dim, dim); }
  static double noise(double d, double zz) { return kRounding * (1 + std::sqrt(zz) / d); }
  static double blur(const double*) { return 0; }
  static bool measured() { return false; }
  bool all_rows_first() const { return n * dim <= kTryRowsWork / n; }
  static constexpr int kMaxRounds = std::numeric_limits<int>::max();

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

}  // namespace byzadmm::detail
