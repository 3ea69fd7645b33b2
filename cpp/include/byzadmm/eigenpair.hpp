// The largest eigenvalue of a symmetric matrix and a unit eigenvector: reflections to tridiagonal form, bisection,
// inverse iteration. Serial, with a fixed number of operations for a given matrix, and no starting vector by chance.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "byzadmm/centred_rows.hpp"
#include "byzadmm/parallel.hpp"

namespace byzadmm {

/// Scratch for matrices of up to `capacity` rows.
class TopEigenpair {
 public:
  explicit TopEigenpair(index_t capacity)
      : matrix(static_cast<std::size_t>(capacity * capacity)),
        vector(size(capacity)),
        diagonal_(size(capacity)),
        beside_(size(capacity)),
        scratch_(4 * size(capacity)) {}

  std::vector<double> matrix;  // (m, m) row by row, both halves; set before find, which destroys it
  std::vector<double> vector;  // the first m numbers: the eigenvector

  /// The largest eigenvalue of the m x m matrix, whose elements are of about unit size at most; right to a few m units
  /// in the last place of the largest element. Of a repeated one the vector is some unit vector of its eigenspace.
  double find(index_t m) {
    if (m == 1) {
      vector[0] = 1;
      return matrix[0];
    }
    reduce(m);
    const double value = largest(m);
    invert(m, value);
    turn_back(m);
    return value;
  }

 private:
  static std::size_t size(index_t n) { return static_cast<std::size_t>(n); }

  /// matrix = Q T Q': T in diagonal_ and beside_, the vectors of the reflections in the rows of the matrix, right of
  /// its diagonal, each of length sqrt(2) (or 0 for none).
  void reduce(index_t m) {
    double *a = matrix.data(), *p = scratch_.data(), largest = 0;
    for (index_t e = 0; e < m * m; ++e) largest = std::max(largest, std::fabs(a[e]));
    const double negligible = largest * 0x1p-70 * (largest * 0x1p-70);  // rounding of rounding, down to underflow
    for (index_t k = 0; k < m; ++k) {
      check_stop();
      diagonal_[size(k)] = a[k * m + k];
      const index_t rest = m - k - 1;
      if (rest == 0) break;
      double* v = a + k * m + k + 1;
      const double tail = detail::dot(v + 1, v + 1, rest - 1);
      if (tail <= negligible) {
        beside_[size(k)] = v[0];
        std::fill(v, v + rest, 0.0);
        continue;
      }
      const double norm = std::sqrt(v[0] * v[0] + tail);
      beside_[size(k)] = v[0] > 0 ? -norm : norm;
      v[0] -= beside_[size(k)];
      const double unit = std::sqrt(2 / (v[0] * v[0] + tail));
      for (index_t i = 0; i < rest; ++i) v[i] *= unit;
      double* block = a + (k + 1) * m + k + 1;
      for (index_t i = 0; i < rest; ++i) p[i] = detail::dot(block + i * m, v, rest);
      detail::add_scaled(-0.5 * detail::dot(p, v, rest), v, p, rest);
      for (index_t i = 0; i < rest; ++i)
        for (index_t j = 0; j < rest; ++j) block[i * m + j] -= v[i] * p[j] + p[i] * v[j];
    }
  }

  /// Largest eigenvalue of T: all of T - x is negative definite beyond it.
  double largest(index_t m) const {
    double low = diagonal_[0], high = diagonal_[0];
    for (index_t i = 0; i < m; ++i) {
      const double reach =
          (i > 0 ? std::fabs(beside_[size(i - 1)]) : 0) + (i < m - 1 ? std::fabs(beside_[size(i)]) : 0);
      low = std::max(low, diagonal_[size(i)]);
      high = std::max(high, diagonal_[size(i)] + reach);
    }
    for (;;) {
      const double x = low + (high - low) / 2;
      if (!(x > low && x < high)) return high;
      double pivot = diagonal_[0] - x;
      index_t i = 1;
      for (; i < m && pivot < 0; ++i) {
        const double off = beside_[size(i - 1)];
        pivot = diagonal_[size(i)] - x - off * off / pivot;
      }
      if (pivot < 0) high = x;
      else low = x;
    }
  }

  /// vector = an eigenvector of T: three solutions of (T - value) z = the last one, from a start without symmetry.
  void invert(index_t m, double value) {
    double *main = scratch_.data(), *above = main + m, *second = above + m, *lower = second + m;
    double entry = 0;  // the largest of T
    for (index_t i = 0; i < m; ++i)
      entry = std::max({entry, std::fabs(diagonal_[size(i)]), i < m - 1 ? std::fabs(beside_[size(i)]) : 0.0});
    const double tiny = std::numeric_limits<double>::epsilon() * (entry > 0 ? entry : 1.0);
    std::uint64_t state = 1;
    for (index_t i = 0; i < m; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      vector[size(i)] = 0.5 + static_cast<double>(state >> 11) * 0x1p-54;
    }
    double* z = vector.data();
    for (int turn = 0; turn < 3; ++turn) {
      for (index_t i = 0; i < m; ++i) {
        main[i] = diagonal_[size(i)] - value;
        above[i] = lower[i] = i < m - 1 ? beside_[size(i)] : 0;
        second[i] = 0;
      }
      for (index_t i = 0; i + 1 < m; ++i) {  // elimination, each time with the larger pivot
        if (std::fabs(lower[i]) > std::fabs(main[i])) {
          std::swap(main[i], lower[i]);
          std::swap(above[i], main[i + 1]);
          std::swap(second[i], above[i + 1]);
          std::swap(z[i], z[i + 1]);
        }
        if (std::fabs(main[i]) < tiny) main[i] = tiny;
        const double factor = lower[i] / main[i];
        main[i + 1] -= factor * above[i];
        above[i + 1] -= factor * second[i];
        z[i + 1] -= factor * z[i];
      }
      if (std::fabs(main[m - 1]) < tiny) main[m - 1] = tiny;
      double top = 0;
      for (index_t i = m - 1; i >= 0; --i) {
        double rest = z[i];
        if (i + 1 < m) rest -= above[i] * z[i + 1];
        if (i + 2 < m) rest -= second[i] * z[i + 2];
        z[i] = rest / main[i];
        top = std::max(top, std::fabs(z[i]));
      }
      double norm = 0;
      for (index_t i = 0; i < m; ++i) {
        z[i] /= top;
        norm += z[i] * z[i];
      }
      for (index_t i = 0; i < m; ++i) z[i] /= std::sqrt(norm);
    }
  }

  /// vector = Q vector.
  void turn_back(index_t m) {
    for (index_t k = m - 2; k >= 0; --k) {
      const double* v = matrix.data() + k * m + k + 1;
      double* to = vector.data() + k + 1;
      detail::add_scaled(-detail::dot(v, to, m - k - 1), v, to, m - k - 1);
    }
  }

  std::vector<double> diagonal_, beside_, scratch_;
};

/// v = a unit eigenvector of the largest eigenvalue, which is returned.  a: (n, n), symmetric, finite, of about unit
/// size; v: (n).
BYZ_NOINLINE inline double top_eigenvector(const double* a, index_t n, double* v) {
  TopEigenpair pair(n);
  std::copy(a, a + n * n, pair.matrix.begin());
  const double value = pair.find(n);
  std::copy(pair.vector.begin(), pair.vector.end(), v);
  return value;
}

}  // namespace byzadmm
