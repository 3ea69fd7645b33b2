// Logistic and linear regression: a linear model (linear.hpp) with one output z, and a loss of it.
//
// Extreme inputs: sums beyond the range of T make z infinite, or NaN where infinities of both signs meet; a NaN makes
// the gradient NaN. Logistic has its limits there, so its residual is finite for every z but NaN. LeastSquares has an
// infinite residual, and the gradient is infinite or NaN.
#pragma once

#include "byzadmm/linear.hpp"

namespace byzadmm {

/// F(z, y) = log(1 + exp(-t)) with t = z for y = 1, t = -z for y = 0.
struct Logistic {
  using Target = std::int64_t;

  /// sigmoid(z) - y, formed as -s sigmoid(-t), s = +-1: it keeps its relative precision where it is small.
  template <class T, class Label>
  static BYZ_ALWAYS_INLINE void residuals(T* z, index_t count, index_t, Label&& label) {
    using V = simd::vec<T>;
    T sign[kBatchTile] = {};
    for (index_t s = 0; s < count; ++s) sign[s] = label(s) ? T(1) : T(-1);
    for (index_t s = 0; s < count; s += simd::lanes<T>) {
      const V side = simd::load(sign + s), t = side * simd::load(z + s);
      const V e = simd::exp<T>(simd::min(t, -t));
      simd::store(z + s, -side * ((t < simd::splat(T(0)) ? simd::splat(T(1)) : e) / (T(1) + e)));
    }
    for (index_t s = count; s < kBatchTile; ++s) z[s] = T(0);
  }

  /// sigmoid(z) sigmoid(-z) u
  template <class T>
  static BYZ_ALWAYS_INLINE void curvature(const T* z, T* u, index_t count, index_t) {
    using V = simd::vec<T>;
    for (index_t s = 0; s < count; s += simd::lanes<T>) {
      const V t = simd::load(z + s), e = simd::exp<T>(simd::min(t, -t));
      simd::store(u + s, (e / ((T(1) + e) * (T(1) + e))) * simd::load(u + s));
    }
    for (index_t s = count; s < kBatchTile; ++s) u[s] = T(0);
  }

  template <class T, class Label>
  static void losses(const T* z, index_t count, index_t, Label&& label, double* out) {
    for (index_t s = 0; s < count; ++s) {
      const double t = label(s) ? static_cast<double>(z[s]) : -static_cast<double>(z[s]);
      out[s] = std::log1p(std::exp(-std::abs(t))) + (t < 0 ? -t : 0.0);
    }
  }
};

/// F(z, y) = (z - y)^2 / 2.
struct LeastSquares {
  using Target = double;

  template <class T, class Value>
  static BYZ_ALWAYS_INLINE void residuals(T* z, index_t count, index_t, Value&& value) {
    for (index_t s = 0; s < count; ++s) z[s] -= static_cast<T>(value(s));
    for (index_t s = count; s < kBatchTile; ++s) z[s] = T(0);
  }

  template <class T>
  static BYZ_ALWAYS_INLINE void curvature(const T*, T* u, index_t count, index_t) {
    for (index_t s = count; s < kBatchTile; ++s) u[s] = T(0);
  }

  template <class T, class Value>
  static void losses(const T* z, index_t count, index_t, Value&& value, double* out) {
    for (index_t s = 0; s < count; ++s) {
      const double r = static_cast<double>(z[s]) - value(s);
      out[s] = 0.5 * r * r;
    }
  }
};

}  // namespace byzadmm
