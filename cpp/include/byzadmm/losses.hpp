// Where a worker's stochastic gradient comes from: softmax regression on its samples, or a quadratic.
#pragma once

#include <vector>

#include "byzadmm/attacks.hpp"
#include "byzadmm/softmax.hpp"

namespace byzadmm {

/// gradient(): worker's stochastic gradient of iteration k at a model. `slot` names the running thread's scratch, which
/// reserve() makes room for.
template <class T>
class Loss {
 public:
  virtual ~Loss() = default;
  virtual index_t workers() const = 0;
  virtual index_t dim() const = 0;
  virtual void reserve(int threads) = 0;
  virtual void gradient(index_t worker, const T* model, std::int64_t k, T* g, int slot) = 0;
};

/// Softmax regression; worker i draws `batch` of its samples part[offset[i] .. offset[i+1]) with replacement.
/// A poisoned worker sees label K - 1 - y instead of y.
template <class T, class X>
class SoftmaxLoss final : public Loss<T> {
 public:
  SoftmaxLoss(Samples<X> samples, const std::int64_t* y, const std::int64_t* flipped_y, const std::int64_t* part,
              const std::int64_t* offset, const bool* poisoned, index_t workers, index_t classes, double scale,
              index_t batch, std::uint64_t seed)
      : samples_(samples),
        y_(y),
        flipped_y_(flipped_y),
        part_(part),
        offset_(offset),
        poisoned_(poisoned),
        workers_(workers),
        classes_(classes),
        scale_(scale),
        batch_(batch),
        seed_(seed) {}

  index_t workers() const override { return workers_; }
  index_t dim() const override { return classes_ * (samples_.d + 1); }

  void reserve(int threads) override {
    const auto slots = static_cast<std::size_t>(threads);
    scratch_.resize(slots * static_cast<std::size_t>(softmax_scratch<T, X>(samples_.d, classes_)));
    index_.resize(2 * slots * static_cast<std::size_t>(batch_));
  }

  void gradient(index_t worker, const T* model, std::int64_t k, T* g, int slot) override {
    std::int64_t* idx = index_.data() + 2 * slot * batch_;
    draw(worker, k, idx);
    // The rows of the worker that this thread most likely takes next are on their way while this one is computed.
    std::int64_t* next = nullptr;
    if (worker + 1 < workers_) {
      next = idx + batch_;
      draw(worker + 1, k, next);
    }
    const SoftmaxModel<T> shape{model, classes_, samples_.d, samples_.d + 1, static_cast<T>(scale_)};
    softmax_gradient_one(shape, samples_, poisoned_[worker] ? flipped_y_ : y_, idx, next, batch_, g,
                         scratch_.data() + slot * softmax_scratch<T, X>(samples_.d, classes_));
  }

  /// The samples of worker's batch of iteration k.
  void draw(index_t worker, std::int64_t k, std::int64_t* idx) const {
    const std::int64_t lo = offset_[worker], size = offset_[worker + 1] - lo;
    philox_integers(Stream{seed_, static_cast<std::uint64_t>(Purpose::batch), static_cast<std::uint64_t>(worker),
                           static_cast<std::uint64_t>(k)},
                    static_cast<std::uint64_t>(size), idx, batch_);
    for (index_t b = 0; b < batch_; ++b) idx[b] = part_[lo + idx[b]];
  }

 private:
  Samples<X> samples_;
  const std::int64_t *y_, *flipped_y_, *part_, *offset_;
  const bool* poisoned_;
  index_t workers_, classes_;
  double scale_;
  index_t batch_;
  std::uint64_t seed_;
  std::vector<T> scratch_;
  std::vector<std::int64_t> index_;
};

/// F_i(x) = 1/2 sum_j a_ij (x_j - b_ij)^2, plus N(0, noise^2) in every element of the gradient.
template <class T>
class QuadraticLoss final : public Loss<T> {
 public:
  QuadraticLoss(const T* a, const T* b, index_t workers, index_t dim, double noise, std::uint64_t seed)
      : a_(a), b_(b), workers_(workers), dim_(dim), noise_(noise), seed_(seed) {}

  index_t workers() const override { return workers_; }
  index_t dim() const override { return dim_; }
  void reserve(int threads) override { scratch_.resize(static_cast<std::size_t>(threads * dim_)); }

  void gradient(index_t worker, const T* model, std::int64_t k, T* g, int slot) override {
    const T *a = a_ + worker * dim_, *b = b_ + worker * dim_;
    for (index_t j = 0; j < dim_; ++j) g[j] = a[j] * (model[j] - b[j]);
    if (noise_ > 0) {
      T* noise = scratch_.data() + slot * dim_;
      philox_normal(Stream{seed_, static_cast<std::uint64_t>(Purpose::gradient_noise),
                           static_cast<std::uint64_t>(worker), static_cast<std::uint64_t>(k)},
                    static_cast<T>(noise_), noise, dim_);
      for (index_t j = 0; j < dim_; ++j) g[j] += noise[j];
    }
  }

 private:
  const T *a_, *b_;
  index_t workers_, dim_;
  double noise_;
  std::uint64_t seed_;
  std::vector<T> scratch_;
};

}  // namespace byzadmm
