// Where a worker's stochastic gradient comes from: a linear model on a batch of its samples, or a quadratic.
#pragma once

#include <memory>
#include <vector>

#include "byzadmm/batches.hpp"
#include "byzadmm/loss.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/philox.hpp"
#include "byzadmm/regression.hpp"
#include "byzadmm/softmax.hpp"

namespace byzadmm {

/// A loss F of a linear model's outputs on everybody's samples.
template <class T, class F>
class LinearLoss final : public Loss<T> {
 public:
  explicit LinearLoss(const SharedSamples<T, typename F::Target>& all)
      : batches_(all), outputs_(all.outputs), scale_(static_cast<T>(all.scale)) {}

  index_t workers() const override { return batches_.workers(); }
  index_t dim() const override { return outputs_ * (batches_.samples().d + 1); }

  void reserve(int threads) override {
    scratch_.resize(static_cast<std::size_t>(threads * linear_scratch(batches_.samples(), outputs_)));
    batches_.reserve(threads);
  }

  void gradient(index_t worker, const T* model, std::int64_t k, T* g, int slot) override {
    const auto& batch = batches_.take(worker, k, slot);
    const SamplesAs<T>& samples = batches_.samples();
    linear_gradient_one<F>(
        LinearModel<T>{model, outputs_, samples.d, samples.d + 1, scale_}, samples, batch.row.data(), batch.next,
        [target = batch.target.data()](index_t b) { return target[b]; }, batches_.size(), g,
        scratch_.data() + slot * linear_scratch(samples, outputs_));
  }

 private:
  Batches<T, typename F::Target> batches_;
  index_t outputs_;
  T scale_;
  std::vector<T> scratch_;
};

template <class F, class T>
std::unique_ptr<Loss<T>> make_linear_loss(const SharedSamples<T, typename F::Target>& all) {
  return std::make_unique<LinearLoss<T, F>>(all);
}

template <class T>
using SoftmaxLoss = LinearLoss<T, Softmax>;
template <class T>
using LogisticLoss = LinearLoss<T, Logistic>;
template <class T>
using LeastSquaresLoss = LinearLoss<T, LeastSquares>;

template <class T>
class QuadraticLoss final : public Loss<T> {
 public:
  explicit QuadraticLoss(const Quadratics<T>& of) : of_(of) {}

  index_t workers() const override { return of_.workers; }
  index_t dim() const override { return of_.dim; }
  void reserve(int threads) override { scratch_.resize(static_cast<std::size_t>(threads * of_.dim)); }

  void gradient(index_t worker, const T* model, std::int64_t k, T* g, int slot) override {
    const index_t d = of_.dim;
    const T *a = of_.a + worker * d, *b = of_.b + worker * d;
    for (index_t j = 0; j < d; ++j) g[j] = a[j] * (model[j] - b[j]);
    if (of_.noise > 0) {
      T* noise = scratch_.data() + slot * d;
      philox_normal(Stream{of_.seed, static_cast<std::uint64_t>(Purpose::gradient_noise),
                           static_cast<std::uint64_t>(worker), static_cast<std::uint64_t>(k)},
                    static_cast<T>(of_.noise), noise, d);
      for (index_t j = 0; j < d; ++j) g[j] += noise[j];
    }
  }

 private:
  Quadratics<T> of_;
  std::vector<T> scratch_;
};

/// out_i = the gradient of worker workers_i in iteration k, at its own model models_i (n, d) or at a shared one (d).
template <class T>
void gradients(Loss<T>& loss, const T* models, bool shared, const std::vector<index_t>& workers, std::int64_t k, T* out,
               int threads) {
  const index_t d = loss.dim();
  loss.reserve(threads);
  for_tasks(static_cast<index_t>(workers.size()), threads, [&](index_t i, int slot) {
    loss.gradient(workers[static_cast<std::size_t>(i)], shared ? models : models + i * d, k, out + i * d, slot);
  });
}

}  // namespace byzadmm
