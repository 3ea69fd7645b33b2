// How far rows stand out along the direction in which they differ most, from the squared distances between them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "byzadmm/eigenpair.hpp"
#include "byzadmm/wide.hpp"

namespace byzadmm {

/// score_i * 2^e = <x_i - mean, v>^2 with v the top right singular vector of the rows less their mean; returns e.
/// With sigma u v^T the top term of the decomposition these are sigma^2 u^2: u is the top eigenvector of the products
/// of the centered rows, which follow from the squared distances D as -1/2 J D J, J = I - 1/n.  score: (n).
inline int projections(const SquaredDistances& squared, double* score) {
  const index_t n = squared.n;
  const auto size = static_cast<std::size_t>(n);
  std::vector<double> product(size * size), mean(size), vector(size);
  // The largest about 1: a smaller one may vanish beside it.
  const auto split = [&](index_t e, int* power) {
    const double mantissa = std::frexp(squared.value[e], power);
    if (squared.exponent) *power += squared.exponent[e];
    return mantissa;
  };
  int unit = 0, power = 0;
  bool any = false;
  for (index_t e = 0; e < n * n; ++e)
    if (split(e, &power) > 0) {
      unit = any ? std::max(unit, power) : power;
      any = true;
    }
  for (index_t e = 0; any && e < n * n; ++e) {
    const double mantissa = split(e, &power);
    product[e] = mantissa > 0 ? std::ldexp(mantissa, power - unit) : 0.0;
  }
  double all = 0;
  for (index_t i = 0; i < n; ++i) {
    double sum = 0;
    for (index_t k = 0; k < n; ++k) sum += product[i * n + k];
    all += mean[i] = sum / static_cast<double>(n);
  }
  all /= static_cast<double>(n);
  for (index_t i = 0; i < n; ++i)
    for (index_t k = 0; k < n; ++k) product[i * n + k] = -0.5 * (product[i * n + k] - mean[i] - mean[k] + all);
  const double value = top_eigenvector(product.data(), n, vector.data());
  for (index_t i = 0; i < n; ++i) {
    double along = 0;  // a row at a time, so that equal rows have equal scores
    for (index_t k = 0; k < n; ++k) along += product[i * n + k] * vector[k];
    score[i] = value > 0 ? along * along / value : 0.0;
  }
  return unit;
}

}  // namespace byzadmm
