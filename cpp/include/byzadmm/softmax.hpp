// Softmax regression: a linear model (linear.hpp) with an output per class, and cross-entropy.
#pragma once

#include "byzadmm/linear.hpp"

namespace byzadmm {

template <class T>
using SoftmaxModel = LinearModel<T>;

namespace detail {

/// z[k][s] <- softmax(z[.][s])_k for s < count, 0 for the others. A sample with a logit NaN or +inf becomes NaN.
template <class T>
BYZ_NOINLINE void softmax_columns(T* z, index_t count, index_t classes) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  for (index_t s = 0; s < count; s += L) {
    T* column = z + s;
    V top = simd::load(column);
    for (index_t k = 1; k < classes; ++k) top = simd::max(simd::load(column + k * kBatchTile), top);
    V sum{};
    for (index_t k = 0; k < classes; ++k) {
      const V e = simd::exp<T>(simd::load(column + k * kBatchTile) - top);
      simd::store(column + k * kBatchTile, e);
      sum += e;
    }
    for (index_t k = 0; k < classes; ++k)
      simd::store(column + k * kBatchTile, simd::load(column + k * kBatchTile) / sum);
  }
  for (index_t k = 0; k < classes; ++k)
    for (index_t s = count; s < kBatchTile; ++s) z[k * kBatchTile + s] = T(0);
}

}  // namespace detail

/// F(z, y) = log sum_k exp(z_k) - z_y.
struct Softmax {
  using Target = std::int64_t;

  /// softmax(z) - e_y
  template <class T, class Label>
  static BYZ_ALWAYS_INLINE void residuals(T* z, index_t count, index_t classes, Label&& label) {
    detail::softmax_columns(z, count, classes);
    for (index_t s = 0; s < count; ++s) z[static_cast<index_t>(label(s)) * kBatchTile + s] -= T(1);
  }

  /// log sum_k exp(z_k - top) - (z_y - top)
  template <class T>
  static double loss(const T* z, index_t classes, Target label) {
    T top = z[0];
    for (index_t k = 1; k < classes; ++k) top = z[k * kBatchTile] > top ? z[k * kBatchTile] : top;
    double sum = 0;
    for (index_t k = 0; k < classes; ++k)
      sum += std::exp(static_cast<double>(z[k * kBatchTile]) - static_cast<double>(top));
    return std::log(sum) - (static_cast<double>(z[label * kBatchTile]) - static_cast<double>(top));
  }
};

/// g_i = (1/B) sum_b (softmax(W_i x_b) - e_{y_b}) (scale x_b, 1)^T; arguments as in linear_gradient.
template <class T>
void softmax_gradient(const SoftmaxModel<T>& shape, const T* w, const SamplesAs<T>& samples, const std::int64_t* y,
                      const std::int64_t* idx, index_t m, index_t B, T* g, int threads) {
  linear_gradient<Softmax>(shape, w, samples, y, idx, m, B, g, threads);
}

/// Mean of -log p_y over the samples idx[0..B).
template <class T>
double softmax_loss(const SoftmaxModel<T>& model, const SamplesAs<T>& samples, const std::int64_t* y,
                    const std::int64_t* idx, index_t B, int threads) {
  return linear_loss<Softmax>(model, samples, y, idx, B, threads);
}

/// out_s = the class of the largest logit, the lowest of equals; a NaN logit counts as largest, as in numpy.argmax.
template <class T>
BYZ_NOINLINE void softmax_predict(const SoftmaxModel<T>& model, const SamplesAs<T>& samples, std::int64_t* out,
                                  int threads) {
  for_outputs(model, samples, nullptr, samples.n, threads, [&](index_t lo, index_t count, const T* z) {
    for (index_t s = 0; s < count; ++s) {
      const auto logit = [=](index_t k) { return z[k * kBatchTile + s]; };
      index_t best = 0;
      for (index_t k = 1; k < model.outputs && logit(best) == logit(best); ++k)
        if (!(logit(k) <= logit(best))) best = k;
      out[lo + s] = best;
    }
  });
}

}  // namespace byzadmm
