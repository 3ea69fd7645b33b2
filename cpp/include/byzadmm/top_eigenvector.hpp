// The eigenvector of a symmetric matrix that belongs to its largest eigenvalue.
//
// Householder reflections make the matrix tridiagonal, bisection finds the eigenvalue, inverse iteration the vector: no
// start to choose, and no convergence to wait for. About 4/3 n^3 operations.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "byzadmm/centred_rows.hpp"
#include "byzadmm/parallel.hpp"

namespace byzadmm {

namespace detail {

/// A symmetric tridiagonal matrix: diagonal (n), and beside it (n), of which the last is not used.
struct Tridiagonal {
  std::vector<double> diagonal, beside;

  std::size_t size() const { return diagonal.size(); }

  /// Whether some eigenvalue is larger than x: then a pivot of T - x is positive.
  bool has_larger(double x) const {
    constexpr double kLeast = std::numeric_limits<double>::min();
    double pivot = 1;
    for (std::size_t i = 0; i < size(); ++i) {
      pivot = diagonal[i] - x - (i > 0 ? beside[i - 1] * (beside[i - 1] / pivot) : 0.0);
      if (pivot > 0) return true;
      if (pivot > -kLeast) pivot = -kLeast;
    }
    return false;
  }

  double largest_eigenvalue() const {
    double low = -std::numeric_limits<double>::infinity(), high = low;
    for (std::size_t i = 0; i < size(); ++i) {
      const double reach = (i > 0 ? std::fabs(beside[i - 1]) : 0.0) + (i + 1 < size() ? std::fabs(beside[i]) : 0.0);
      low = std::max(low, diagonal[i]);
      high = std::max(high, diagonal[i] + reach);
    }
    for (;;) {
      const double middle = low + (high - low) / 2;
      if (!(low < middle && middle < high)) return high;
      (has_larger(middle) ? low : high) = middle;
    }
  }

  /// y <- a multiple of (T - x)^-1 y, of length 1, by elimination with exchanges of rows.
  void solve(double x, double least, std::vector<double>& y) const {
    const std::size_t n = size();
    std::vector<double> first(n), second(n), third(n);        // of each row, once it is eliminated
    double a = diagonal[0] - x, b = n > 1 ? beside[0] : 0.0;  // what is left of row i in columns i and i + 1
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const double p = beside[i], q = diagonal[i + 1] - x, r = i + 2 < n ? beside[i + 1] : 0.0;  // row i + 1
      if (std::fabs(p) > std::fabs(a)) {
        const double factor = a / p;
        first[i] = p, second[i] = q, third[i] = r;
        a = b - factor * q;
        b = -factor * r;
        std::swap(y[i], y[i + 1]);
        y[i + 1] -= factor * y[i];
      } else {
        first[i] = std::fabs(a) < least ? least : a;
        second[i] = b;
        const double factor = p / first[i];
        a = q - factor * b;
        b = r;
        y[i + 1] -= factor * y[i];
      }
    }
    first[n - 1] = std::fabs(a) < least ? least : a;
    double most = 0;
    for (std::size_t i = n; i-- > 0;) {
      double sum = y[i];
      if (i + 1 < n) sum -= second[i] * y[i + 1];
      if (i + 2 < n) sum -= third[i] * y[i + 2];
      y[i] = sum / first[i];
      most = std::max(most, std::fabs(y[i]));
    }
    double square = 0;
    for (double& value : y) square += (value / most) * (value / most);
    for (double& value : y) value = value / most / std::sqrt(square);
  }
};

}  // namespace detail

/// v = the eigenvector of length 1 of the largest eigenvalue, which is returned; of equal ones, some vector.
/// a: (n, n), symmetric, finite, of about unit size, destroyed; v: (n).
BYZ_NOINLINE inline double top_eigenvector(double* a, index_t n, double* v) {
  using namespace detail;
  const auto size = static_cast<std::size_t>(n);
  Tridiagonal t{std::vector<double>(size), std::vector<double>(size)};
  std::vector<double> scale(size), p(size);
  const auto row = [=](index_t i) { return a + i * n; };
  constexpr double kNothing = 1e-200;  // a square beside those of a matrix of unit size; 2 / kNothing is finite
  // Step k reflects the entries of row k beyond its diagonal onto the first of them. The reflection stays in row k.
  for (index_t k = 0; k + 2 < n; ++k) {
    check_stop();
    const index_t count = n - k - 1;
    double* u = row(k) + k + 1;
    const double rest = dot(u + 1, u + 1, count - 1), length = std::sqrt(u[0] * u[0] + rest);
    t.diagonal[k] = row(k)[k];
    if (rest < kNothing) {
      t.beside[k] = u[0];
      continue;
    }
    t.beside[k] = u[0] > 0 ? -length : length;
    u[0] -= t.beside[k];
    scale[k] = 2 / (u[0] * u[0] + rest);
    for (index_t i = 0; i < count; ++i) p[i] = scale[k] * dot(row(k + 1 + i) + k + 1, u, count);
    add_scaled(-0.5 * scale[k] * dot(p.data(), u, count), u, p.data(), count);
    for (index_t i = 0; i < count; ++i) {
      double* below = row(k + 1 + i) + k + 1;
      for (index_t j = 0; j < count; ++j) below[j] -= u[i] * p[j] + p[i] * u[j];
    }
  }
  for (index_t k = std::max<index_t>(n - 2, 0); k < n; ++k) t.diagonal[k] = row(k)[k];
  if (n > 1) t.beside[n - 2] = row(n - 2)[n - 1];
  const double value = t.largest_eigenvalue();
  std::vector<double> y(size, 1.0);
  for (index_t i = 0; i < n; ++i) y[i] += static_cast<double>(7 * i % 11) / 16;  // no symmetry to be caught in
  double largest = 0;                                                            // entry of the tridiagonal matrix
  for (index_t i = 0; i < n; ++i) largest = std::max({largest, std::fabs(t.diagonal[i]), std::fabs(t.beside[i])});
  const double least = kEpsilon * (largest > 0 ? largest : 1.0);
  for (int turn = 0; turn < 3; ++turn) t.solve(value, least, y);
  for (index_t k = n - 3; k >= 0; --k)
    if (scale[k] != 0)
      add_scaled(-scale[k] * dot(row(k) + k + 1, y.data() + k + 1, n - k - 1), row(k) + k + 1, y.data() + k + 1,
                 n - k - 1);
  std::copy(y.begin(), y.end(), v);
  return value;
}

}  // namespace byzadmm
