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

  /// p (u - <p, u>) with p = softmax(z); z becomes p.
  template <class T>
  static BYZ_ALWAYS_INLINE void curvature(T* z, T* u, index_t count, index_t classes) {
    using V = simd::vec<T>;
    detail::softmax_columns(z, count, classes);
    for (index_t s = 0; s < count; s += simd::lanes<T>) {
      V mean{};
      for (index_t k = 0; k < classes; ++k)
        mean = simd::madd<T>(simd::load(z + k * kBatchTile + s), simd::load(u + k * kBatchTile + s), mean);
      for (index_t k = 0; k < classes; ++k) {
        T* to = u + k * kBatchTile + s;
        simd::store(to, simd::load(z + k * kBatchTile + s) * (simd::load(to) - mean));
      }
    }
    for (index_t k = 0; k < classes; ++k)
      for (index_t s = count; s < kBatchTile; ++s) u[k * kBatchTile + s] = T(0);
  }

  /// log sum_k exp(z_k - top) - (z_y - top)
  template <class T, class Label>
  static void losses(const T* z, index_t count, index_t classes, Label&& label, double* out) {
    T top[kBatchTile];
    double below[kBatchTile] = {}, sum[kBatchTile] = {};
    for (index_t s = 0; s < count; ++s) top[s] = z[s];
    for (index_t k = 1; k < classes; ++k)
      for (index_t s = 0; s < count; ++s) top[s] = z[k * kBatchTile + s] > top[s] ? z[k * kBatchTile + s] : top[s];
    for (index_t k = 0; k < classes; ++k) {
      for (index_t s = 0; s < count; ++s)
        below[s] = static_cast<double>(z[k * kBatchTile + s]) - static_cast<double>(top[s]);
      for (index_t s = 0; s < count; s += simd::lanes<double>)
        simd::store(sum + s, simd::load(sum + s) + simd::exp<double>(simd::load(below + s)));
    }
    for (index_t s = 0; s < count; ++s) {
      const double own = static_cast<double>(z[static_cast<index_t>(label(s)) * kBatchTile + s]);
      out[s] = std::log(sum[s]) - (own - static_cast<double>(top[s]));
    }
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
  using V = simd::vec<T>;
  using I = simd::int_of<T>;
  for_outputs(model, samples, nullptr, samples.n, threads, [&](index_t lo, index_t count, const T* z) {
    I best[kBatchTile];
    for (index_t s = 0; s < count; s += simd::lanes<T>) {
      V top = simd::load(z + s);
      simd::vec<I> at{};
      for (index_t k = 1; k < model.outputs; ++k) {
        const V logit = simd::load(z + k * kBatchTile + s);
        const auto better = ~(logit <= top) & (top == top);
        top = better ? logit : top;
        at = better ? simd::splat(static_cast<I>(k)) : at;
      }
      simd::store(best + s, at);
    }
    for (index_t s = 0; s < count; ++s) out[lo + s] = best[s];
  });
}

}  // namespace byzadmm
