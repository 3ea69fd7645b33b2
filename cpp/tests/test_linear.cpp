// Linear models: gradients, losses, Hessians and predictions of softmax, logistic and linear regression against their
// formulas.
#include "byzadmm/hessian.hpp"
#include "byzadmm/regression.hpp"
#include "byzadmm/softmax.hpp"
#include "support.hpp"

namespace byzadmm::tests {

namespace {

template <class X>
void fill_features(Buffer<X>& x) {
  if constexpr (std::is_same_v<X, std::uint8_t>) {
    // Many blocks of pixels are all zero.
    for (index_t i = 0; i < x.size; ++i) x[i] = static_cast<X>(i / 16 % 3 == 0 ? generator() % 256 : 0);
  } else {
    fill_normal(x, 100.0);
  }
}

template <class T, class X>
void test_softmax_case(index_t m, index_t K, index_t D, index_t B, bool bias, bool with_idx) {
  const index_t N = with_idx ? 37 : B, stride = D + (bias ? 1 : 0);
  Buffer<X> x(N * D);
  fill_features(x);
  Buffer<T> w(m * K * stride), g(m * K * stride);
  fill_normal(w);
  Buffer<std::int64_t> y(N), idx(m * B), predicted(N);
  for (index_t i = 0; i < N; ++i) y[i] = static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(K));
  for (index_t i = 0; i < m * B; ++i)
    idx[i] = with_idx ? static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(N)) : i % B;
  const std::int64_t* rows = with_idx ? idx.get() : nullptr;
  const auto samples = byzadmm::samples_as<T, X>({x.get(), N, D});
  const double scale = 1.0 / 255;
  const byzadmm::SoftmaxModel<T> shape{w.get(), K, D, stride, static_cast<T>(scale)};
  byzadmm::softmax_gradient<T>(shape, w.get(), samples, y.get(), rows, m, B, g.get(), 2);

  bool gradient_ok = true, loss_ok = true, predict_ok = true;
  const double tolerance = 100 * kEps<T>;
  for (index_t i = 0; i < m; ++i) {
    const T* model = w.get() + i * K * stride;
    std::vector<double> expected(static_cast<std::size_t>(K * stride));
    double loss = 0;
    const auto logits_of = [&](index_t row) {
      std::vector<double> z(static_cast<std::size_t>(K));
      for (index_t k = 0; k < K; ++k) {
        double sum = 0;
        for (index_t j = 0; j < D; ++j)
          sum += static_cast<double>(model[k * stride + j]) * static_cast<double>(x[row * D + j]);
        z[static_cast<std::size_t>(k)] = scale * sum + (bias ? static_cast<double>(model[k * stride + D]) : 0.0);
      }
      return z;
    };
    for (index_t b = 0; b < B; ++b) {
      const index_t row = static_cast<index_t>(idx[i * B + b]);
      const auto z = logits_of(row);
      const double top = *std::max_element(z.begin(), z.end());
      double total = 0;
      for (const double v : z) total += std::exp(v - top);
      loss += std::log(total) - (z[static_cast<std::size_t>(y[row])] - top);
      for (index_t k = 0; k < K; ++k) {
        const double p = std::exp(z[static_cast<std::size_t>(k)] - top) / total - (y[row] == k ? 1.0 : 0.0);
        for (index_t j = 0; j < stride; ++j)
          expected[static_cast<std::size_t>(k * stride + j)] +=
              p * (j < D ? scale * static_cast<double>(x[row * D + j]) : 1.0) / static_cast<double>(B);
      }
    }
    for (index_t e = 0; e < K * stride; ++e)
      gradient_ok = gradient_ok &&
                    close(static_cast<double>(g[i * K * stride + e]), expected[static_cast<std::size_t>(e)], tolerance);
    byzadmm::SoftmaxModel<T> mine = shape;
    mine.w = model;
    const double got = byzadmm::softmax_loss<T>(mine, samples, y.get(), rows ? rows + i * B : nullptr, B, 3);
    loss_ok = loss_ok && close(got, loss / static_cast<double>(B), tolerance * (1 + std::abs(got)));
    if (i == 0) {
      byzadmm::softmax_predict<T>(mine, samples, predicted.get(), 2);
      for (index_t row = 0; row < N; ++row) {
        const auto z = logits_of(row);
        const double top = *std::max_element(z.begin(), z.end());
        // Two classes may be closer than rounding: the prediction must be among the best.
        predict_ok =
            predict_ok && close(z[static_cast<std::size_t>(predicted[row])], top, tolerance * (1 + std::abs(top)));
      }
    }
  }
  const std::string label = " T=" + name_of<T>() + " sizeof(X)=" + std::to_string(sizeof(X)) +
                            " K=" + std::to_string(K) + " D=" + std::to_string(D) + " B=" + std::to_string(B);
  check(gradient_ok, "softmax_gradient" + label);
  check(loss_ok, "softmax_loss" + label);
  check(predict_ok, "softmax_predict" + label);
}

template <class T, class X>
void test_softmax() {
  for (const index_t K : {1, 2, 4, 5, 6, 10, 11})
    for (const index_t D : {1, 7, 8, 9, 33, 71}) test_softmax_case<T, X>(2, K, D, 5, K % 2 == 0, true);
  for (const index_t D : {511, 512, 1037}) test_softmax_case<T, X>(1, 13, D, 33, true, true);
  for (const index_t B : {1, 2, 31, 32, 33, 65}) {
    test_softmax_case<T, X>(3, 3, 13, B, true, true);
    test_softmax_case<T, X>(2, 3, 13, B, false, false);
  }
}

/// One output: gradient, loss and outputs against the formulas in double. y: 0 or 1, or real.
template <class F, class T, class X>
void test_regression_case(index_t D, index_t B, bool bias) {
  const index_t N = 37, m = 2, stride = D + (bias ? 1 : 0);
  const double scale = 1.0 / 255;
  constexpr bool labels = std::is_same_v<F, byzadmm::Logistic>;
  Buffer<X> x(N * D);
  fill_features(x);
  Buffer<T> w(m * stride), g(m * stride), outputs(N);
  fill_normal(w);
  Buffer<typename F::Target> y(N);
  Buffer<std::int64_t> idx(m * B);
  for (index_t i = 0; i < N; ++i)
    y[i] = static_cast<typename F::Target>(labels ? i % 2 : 0.25 * static_cast<double>(i));
  for (index_t i = 0; i < m * B; ++i) idx[i] = static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(N));
  const auto samples = byzadmm::samples_as<T, X>({x.get(), N, D});
  const byzadmm::LinearModel<T> shape{w.get(), 1, D, stride, static_cast<T>(scale)};
  byzadmm::linear_gradient<F, T>(shape, w.get(), samples, y.get(), idx.get(), m, B, g.get(), 2);
  byzadmm::linear_predict<T>(shape, samples, outputs.get(), 3);

  bool gradient_ok = true, loss_ok = true, outputs_ok = true;
  for (index_t i = 0; i < m; ++i) {
    const auto output = [&](index_t row) {
      double z = bias ? static_cast<double>(w[i * stride + D]) : 0.0;
      for (index_t j = 0; j < D; ++j)
        z += scale * static_cast<double>(w[i * stride + j]) * static_cast<double>(x[row * D + j]);
      return z;
    };
    std::vector<double> expected(static_cast<std::size_t>(stride));
    double loss = 0;
    for (index_t b = 0; b < B; ++b) {
      const index_t row = static_cast<index_t>(idx[i * B + b]);
      const double z = output(row), target = static_cast<double>(y[row]);
      const double residual = labels ? 1 / (1 + std::exp(-z)) - target : z - target;
      loss += labels ? std::log1p(std::exp(target > 0 ? -z : z)) : 0.5 * residual * residual;
      for (index_t j = 0; j < stride; ++j)
        expected[static_cast<std::size_t>(j)] +=
            residual * (j < D ? scale * static_cast<double>(x[row * D + j]) : 1.0) / static_cast<double>(B);
    }
    const double tolerance = 400 * kEps<T> * (1 + std::abs(loss));
    for (index_t j = 0; j < stride; ++j)
      gradient_ok = gradient_ok &&
                    close(static_cast<double>(g[i * stride + j]), expected[static_cast<std::size_t>(j)], tolerance);
    byzadmm::LinearModel<T> mine = shape;
    mine.w = w.get() + i * stride;
    const double got = byzadmm::linear_loss<F, T>(mine, samples, y.get(), idx.get() + i * B, B, 3);
    loss_ok = loss_ok && close(got, loss / static_cast<double>(B), tolerance);
    for (index_t row = 0; row < N && i == 0; ++row)
      outputs_ok = outputs_ok && close(static_cast<double>(outputs[row]), output(row), 100 * kEps<T>);
  }
  const std::string label = (labels ? " logistic T=" : " least squares T=") + name_of<T>() +
                            " sizeof(X)=" + std::to_string(sizeof(X)) + " D=" + std::to_string(D) +
                            " B=" + std::to_string(B);
  check(gradient_ok, "linear_gradient" + label);
  check(loss_ok, "linear_loss" + label);
  check(outputs_ok, "linear_predict" + label);
}

/// The residual of any output: of limits, finite for logistic regression.
template <class T>
void test_regression_extremes() {
  const T largest = std::numeric_limits<T>::max();
  for (const T z : {T(0), T(50), T(1e4), largest, kInf<T>})
    for (const T sign : {T(-1), T(1)})
      for (const std::int64_t label : {0, 1}) {
        T tile[byzadmm::kBatchTile] = {sign * z};
        byzadmm::Logistic::residuals(tile, 1, 1, [=](index_t) { return label; });
        const bool right = z == 0 || (sign > 0) == (label == 1);
        const double size = z == 0 ? 0.5 : right ? std::exp(-static_cast<double>(z)) : 1.0;
        const double expected = label == 1 ? -size : size;
        check(close(static_cast<double>(tile[0]), expected, 2 * kEps<T> * size) && tile[1] == T(0),
              "logistic residual " + name_of<T>() + " " + std::to_string(static_cast<double>(sign * z)));
      }
  T tile[byzadmm::kBatchTile] = {kNaN<T>};
  byzadmm::Logistic::residuals(tile, 1, 1, [](index_t) { return 1; });
  check(tile[0] != tile[0], "logistic residual of NaN");
}

template <class T, class X>
void test_regression() {
  for (const bool bias : {true, false}) {
    for (const index_t D : {1, 7, 8, 9, 33, 71, 129}) {
      test_regression_case<byzadmm::Logistic, T, X>(D, 5, bias);
      test_regression_case<byzadmm::LeastSquares, T, X>(D, 5, bias);
    }
    for (const index_t B : {1, 2, 31, 32, 33, 65}) {
      test_regression_case<byzadmm::Logistic, T, X>(13, B, bias);
      test_regression_case<byzadmm::LeastSquares, T, X>(13, B, bias);
    }
  }
}

/// Hessian times a vector against the formula in double; parts of a worker's samples by their number alone.
template <class F, class T, class X>
void test_hessian_case(index_t K, index_t D, index_t B, bool bias) {
  const index_t N = 41, m = 2, stride = D + (bias ? 1 : 0), size = K * stride;
  const double scale = 1.0 / 255;
  Buffer<X> x(N * D);
  fill_features(x);
  Buffer<T> w(m * size), v(m * size), h(m * size), again(m * size);
  fill_normal(w);
  fill_normal(v);
  Buffer<std::int64_t> idx(m * B);
  for (index_t i = 0; i < m * B; ++i) idx[i] = static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(N));
  const auto samples = byzadmm::samples_as<T, X>({x.get(), N, D});
  const byzadmm::LinearModel<T> shape{w.get(), K, D, stride, static_cast<T>(scale)};
  byzadmm::linear_hessian_product<F, T>(shape, w.get(), v.get(), samples, idx.get(), m, B, h.get(), 1);
  byzadmm::linear_hessian_product<F, T>(shape, w.get(), v.get(), samples, idx.get(), m, B, again.get(), 3);

  bool product_ok = true, same = true;
  for (index_t i = 0; i < m; ++i) {
    const auto outputs_of = [&](const Buffer<T>& of, index_t row) {
      std::vector<double> z(static_cast<std::size_t>(K));
      for (index_t k = 0; k < K; ++k) {
        const T* from = of.get() + i * size + k * stride;
        double sum = 0;
        for (index_t j = 0; j < D; ++j) sum += static_cast<double>(from[j]) * static_cast<double>(x[row * D + j]);
        z[static_cast<std::size_t>(k)] = scale * sum + (bias ? static_cast<double>(from[D]) : 0.0);
      }
      return z;
    };
    std::vector<double> expected(static_cast<std::size_t>(size));
    for (index_t b = 0; b < B; ++b) {
      const index_t row = static_cast<index_t>(idx[i * B + b]);
      auto z = outputs_of(w, row);
      const auto u = outputs_of(v, row);
      double total = 0, mean = 0;
      if constexpr (std::is_same_v<F, byzadmm::Softmax>) {
        const double top = *std::max_element(z.begin(), z.end());
        for (double& e : z) total += e = std::exp(e - top);
        for (std::size_t k = 0; k < z.size(); ++k) mean += (z[k] /= total) * u[k];
      }
      for (index_t k = 0; k < K; ++k) {
        const auto at = static_cast<std::size_t>(k);
        double curved = u[at];
        if constexpr (std::is_same_v<F, byzadmm::Softmax>) curved = z[at] * (u[at] - mean);
        if constexpr (std::is_same_v<F, byzadmm::Logistic>) curved = u[at] / (2 + std::exp(z[at]) + std::exp(-z[at]));
        for (index_t j = 0; j < stride; ++j)
          expected[static_cast<std::size_t>(k * stride + j)] +=
              curved * (j < D ? scale * static_cast<double>(x[row * D + j]) : 1.0) / static_cast<double>(B);
      }
    }
    for (index_t e = 0; e < size; ++e) {
      product_ok = product_ok && close(static_cast<double>(h[i * size + e]), expected[static_cast<std::size_t>(e)],
                                       400 * kEps<T> * (1 + std::abs(expected[static_cast<std::size_t>(e)])));
      same = same && h[i * size + e] == again[i * size + e];
    }
  }
  const std::string label = " T=" + name_of<T>() + " sizeof(X)=" + std::to_string(sizeof(X)) +
                            " K=" + std::to_string(K) + " D=" + std::to_string(D) + " B=" + std::to_string(B);
  check(product_ok, "linear_hessian_product" + label);
  check(same, "linear_hessian_product with three threads" + label);
}

template <class T, class X>
void test_hessian() {
  for (const bool bias : {true, false}) {
    for (const index_t D : {1, 7, 8, 9, 33, 71}) {
      test_hessian_case<byzadmm::Softmax, T, X>(D % 5 + 1, D, 5, bias);
      test_hessian_case<byzadmm::Logistic, T, X>(1, D, 33, bias);
      test_hessian_case<byzadmm::LeastSquares, T, X>(1, D, 32, bias);
    }
    for (const index_t B : {1, 31, 512, 513, 1100}) test_hessian_case<byzadmm::Softmax, T, X>(3, 13, B, bias);
  }
  test_hessian_case<byzadmm::Logistic, T, X>(1, 3, 16 * 512 + 40, true);
}

template <class T>
void test_all() {
  test_hessian<T, std::uint8_t>();
  test_hessian<T, float>();
  test_hessian<T, double>();
  test_softmax<T, std::uint8_t>();
  test_softmax<T, float>();
  test_softmax<T, double>();
  test_regression<T, std::uint8_t>();
  test_regression<T, float>();
  test_regression<T, double>();
  test_regression_extremes<T>();
}

}  // namespace

void test_linear() {
  test_all<float>();
  test_all<double>();
}

}  // namespace byzadmm::tests
