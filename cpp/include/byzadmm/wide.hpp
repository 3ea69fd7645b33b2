// Non-negative numbers of any size, each with an exponent of its own.
//
// Squares of distances between float64 rows reach from 2^-2148 to beyond 2^2050, and a common unit would be chosen by
// the farthest rows: the squares of the others would vanish in it. long double is no wider than double on some
// machines.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "byzadmm/views.hpp"

namespace byzadmm {

/// mantissa * 2^exponent with mantissa in [1/2, 1), ordered by exponent, then mantissa; 0 has the least exponent, and
/// infinity and NaN have the largest. Sums round relative to the sum, as those of double do.
struct Wide {
  static constexpr std::int32_t kZero = -(1 << 20), kInfinite = 1 << 20;

  Wide(double value = 0, int shift = 0) : mantissa(value), exponent(value == 0 ? kZero : kInfinite) {  // NOLINT
    if (value == 0 || !(std::fabs(value) <= std::numeric_limits<double>::max())) return;
    int own = 0;
    mantissa = std::frexp(value, &own);
    exponent = own + shift;
  }

  /// The nearest double: 0 or infinity where it is out of range.
  explicit operator double() const { return std::ldexp(mantissa, exponent); }

  Wide& operator+=(Wide other) { return *this = *this + other; }
  Wide& operator-=(Wide other) { return *this = *this - other; }

  friend Wide operator+(Wide a, Wide b) {
    if (a < b) std::swap(a, b);
    return {a.mantissa + std::ldexp(b.mantissa, b.exponent - a.exponent), a.exponent};
  }
  /// For b <= a, b finite.
  friend Wide operator-(Wide a, Wide b) {
    return {a.mantissa - std::ldexp(b.mantissa, b.exponent - a.exponent), a.exponent};
  }
  friend Wide operator*(double factor, Wide a) { return {factor * a.mantissa, a.exponent}; }
  friend bool operator<(Wide a, Wide b) {
    return a.exponent != b.exponent ? a.exponent < b.exponent : a.mantissa < b.mantissa;
  }
  friend bool operator==(Wide a, Wide b) { return a.exponent == b.exponent && a.mantissa == b.mantissa; }
  friend bool operator!=(Wide a, Wide b) { return !(a == b); }

  double mantissa;
  std::int32_t exponent;
};

inline Wide sqrt(Wide a) {
  const std::int32_t odd = a.exponent & 1;
  return {std::sqrt(odd ? 2 * a.mantissa : a.mantissa), (a.exponent - odd) / 2};
}

namespace detail {

/// 2^e as two factors, for one may be out of range.
struct PowerOfTwo {
  double a, b;
  explicit PowerOfTwo(int e) : a(std::ldexp(1.0, e / 2)), b(std::ldexp(1.0, e - e / 2)) {}
};

}  // namespace detail

/// f(pointer to the n * n squares), of double or, where they have exponents, of Wide.
template <class F>
void visit(const SquaredDistances& squared, F&& f) {
  if (!squared.exponent) return f(squared.value);
  const auto size = static_cast<std::size_t>(squared.n * squared.n);
  std::vector<Wide> wide(size);
  for (std::size_t e = 0; e < size; ++e) wide[e] = Wide(squared.value[e], squared.exponent[e]);
  f(static_cast<const Wide*>(wide.data()));
}

}  // namespace byzadmm
