// What the master of an asynchronous run makes of one message as it arrives.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "byzadmm/wide.hpp"

namespace byzadmm {

namespace detail {

/// Numbers of which a sum keeps one of its own each: the order of additions does not depend on the vectors' width.
constexpr index_t kSums = 8;

/// The exponent that brings the largest size into [1/2, 1); 0 for zeros.
inline int exponent_of(double largest) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  return exponent;
}

/// The largest size; infinite if a number is not finite.
template <class T>
double largest_size(const T* x, index_t d) {
  T largest[kSums] = {};
  int odd = 0;
  const auto look = [&](T v, index_t l) BYZ_LAMBDA_INLINE {
    const T size = v < 0 ? -v : v;
    odd |= !(size <= std::numeric_limits<T>::max());
    largest[l] = size > largest[l] ? size : largest[l];
  };
  index_t j = 0;
  for (; j + kSums <= d; j += kSums)
    for (index_t l = 0; l < kSums; ++l) look(x[j + l], l);
  for (; j < d; ++j) look(x[j], 0);
  if (odd) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*std::max_element(largest, largest + kSums));
}

}  // namespace detail

/// BASGD takes the n-th message into the mean of a buffer, (d) each, which any finite numbers leave finite.
template <class T>
BYZ_NOINLINE void add_to_mean(T* mean, const T* message, index_t n, index_t d) {
  if (n == 1) {
    std::copy(message, message + d, mean);
    return;
  }
  constexpr T largest = std::numeric_limits<T>::max();  // rounding may lead beyond
  const T kept = static_cast<T>(static_cast<double>(n - 1) / static_cast<double>(n)), count = static_cast<T>(n);
#pragma GCC ivdep
  for (index_t j = 0; j < d; ++j) {
    T v = mean[j] * kept + message[j] / count;
    v = v > largest ? largest : v;
    mean[j] = v < -largest ? -largest : v;
  }
}

/// Zeno++: out = g ||v|| / ||g||, if alpha <v, out> - rho ||v||^2 + alpha eps >= 0; returns whether that is so.
/// g: (d), finite, the message; v: (d), the master's own gradient: if it is not finite, nothing is accepted. out: (d).
/// Both are brought to sizes of about 1 first, so that lengths neither overflow nor vanish; the message's drops out.
template <class T>
BYZ_NOINLINE bool zeno_direction(const T* g, const double* v, double alpha, double rho, double eps, T* out, index_t d) {
  using namespace detail;
  const double own = largest_size(v, d);
  if (std::isinf(own)) return false;
  const int exponent = exponent_of(own);
  const PowerOfTwo by(-exponent), of(-exponent_of(largest_size(g, d))), back(exponent);
  double vv[kSums] = {}, vg[kSums] = {}, gg[kSums] = {};
  const auto add = [&](index_t j, index_t l) BYZ_LAMBDA_INLINE {
    const double a = v[j] * by.a * by.b, b = static_cast<double>(g[j]) * of.a * of.b;
    vv[l] += a * a;
    vg[l] += a * b;
    gg[l] += b * b;
  };
  index_t j = 0;
  for (; j + kSums <= d; j += kSums)
    for (index_t l = 0; l < kSums; ++l) add(j + l, l);
  for (; j < d; ++j) add(j, 0);
  for (index_t l = 1; l < kSums; ++l) {
    vv[0] += vv[l];
    vg[0] += vg[l];
    gg[0] += gg[l];
  }
  const double factor = gg[0] > 0 ? std::sqrt(vv[0]) / std::sqrt(gg[0]) : 1.0;
  const double slack = std::ldexp(alpha * eps, -2 * exponent);
  if (!(alpha * (factor * vg[0]) - rho * vv[0] + slack >= 0)) return false;
  for (j = 0; j < d; ++j) out[j] = static_cast<T>(static_cast<double>(g[j]) * of.a * of.b * factor * back.a * back.b);
  return true;
}

}  // namespace byzadmm
