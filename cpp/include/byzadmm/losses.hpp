// Where a worker's stochastic gradient comes from: softmax regression on its samples, or a quadratic.
#pragma once

#include <vector>

#include "byzadmm/loss.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/philox.hpp"
#include "byzadmm/softmax.hpp"

namespace byzadmm {

/// Softmax regression on everybody's samples.
///
/// A batch is a few hundred random places in a large file, so the cost is waiting for memory. A thread therefore works
/// on three batches at once: it draws one and asks for its entries, finds the rows of the next and asks for those, and
/// computes with the third, whose rows have arrived.
template <class T>
class SoftmaxLoss final : public Loss<T> {
 public:
  explicit SoftmaxLoss(const SharedSamples<T>& all)
      : samples_(all.samples),
        workers_(all.workers),
        classes_(all.classes),
        scale_(all.scale),
        batch_(all.batch),
        seed_(all.seed),
        offset_(all.offset, all.offset + all.workers + 1) {
    entry_.reserve(static_cast<std::size_t>(offset_.back()));
    for (index_t i = 0; i < workers_; ++i)
      for (std::int64_t e = all.offset[i]; e < all.offset[i + 1]; ++e)
        entry_.push_back({all.part[e], (all.poisoned[i] ? all.flipped_y : all.y)[all.part[e]]});
  }

  index_t workers() const override { return workers_; }
  index_t dim() const override { return classes_ * (samples_.d + 1); }

  void reserve(int threads) override {
    const auto slots = static_cast<std::size_t>(threads), size = static_cast<std::size_t>(batch_);
    scratch_.resize(slots * static_cast<std::size_t>(softmax_scratch(samples_, classes_)));
    lane_.resize(slots);
    for (Lane& lane : lane_) {
      lane.place.resize(size);
      for (Batch& batch : lane.found) {
        batch.row.resize(size);
        batch.label.resize(size);
      }
    }
  }

  void gradient(index_t worker, const T* model, std::int64_t k, T* g, int slot) override {
    Lane& lane = lane_[static_cast<std::size_t>(slot)];
    const Turn now{worker, k};
    lane.learn(now);
    if (lane.found[1].turn != now) find(lane, now);
    std::swap(lane.found[0], lane.found[1]);
    const Batch& batch = lane.found[0];
    const Turn next = lane.after(now);
    if (next.worker < workers_) {
      find(lane, next);
      if (const Turn later = lane.after(next); later.worker < workers_) draw(lane, later);
    }
    const SoftmaxModel<T> shape{model, classes_, samples_.d, samples_.d + 1, static_cast<T>(scale_)};
    softmax_gradient_one(
        shape, samples_, batch.row.data(),
        [label = batch.label.data()](index_t b) { return static_cast<index_t>(label[b]); }, batch_, g,
        scratch_.data() + slot * softmax_scratch(samples_, classes_));
  }

 private:
  /// A sample as a worker sees it, in the order of `part`.
  struct Entry {
    std::int64_t row, label;
  };
  struct Turn {
    index_t worker = -1;
    std::int64_t k = 0;
    bool operator!=(const Turn& other) const { return worker != other.worker || k != other.k; }
  };
  struct Batch {
    Turn turn;
    std::vector<std::int64_t> row, label;
  };
  /// What a thread has prepared, and the workers [first, last] it serves, learnt from what it was asked for: a wrong
  /// guess costs time, never a wrong batch.
  struct Lane {
    Turn drawn, asked;
    index_t first = 0, last = -1;
    std::vector<std::int64_t> place;
    Batch found[2];

    void learn(const Turn& now) {
      if (now.k != asked.k) {
        last = asked.worker;
        first = now.worker;
      }
      asked = now;
    }
    Turn after(const Turn& turn) const {
      return turn.worker == last ? Turn{first, turn.k + 1} : Turn{turn.worker + 1, turn.k};
    }
  };

  /// The places, within the worker's samples, of a turn's batch.
  void draw(Lane& lane, const Turn& turn) const {
    const std::int64_t lo = offset_[static_cast<std::size_t>(turn.worker)];
    const std::int64_t hi = offset_[static_cast<std::size_t>(turn.worker) + 1];
    philox_integers(Stream{seed_, static_cast<std::uint64_t>(Purpose::batch), static_cast<std::uint64_t>(turn.worker),
                           static_cast<std::uint64_t>(turn.k)},
                    static_cast<std::uint64_t>(hi - lo), lane.place.data(), batch_);
    for (std::int64_t& place : lane.place) {
      place += lo;
      __builtin_prefetch(entry_.data() + place);
    }
    lane.drawn = turn;
  }

  /// found[1] = the batch of a turn, its rows asked for.
  void find(Lane& lane, const Turn& turn) const {
    if (lane.drawn != turn) draw(lane, turn);
    Batch& batch = lane.found[1];
    for (std::size_t b = 0; b < lane.place.size(); ++b) {
      const Entry& entry = entry_[static_cast<std::size_t>(lane.place[b])];
      batch.row[b] = entry.row;
      batch.label[b] = entry.label;
    }
    batch.turn = turn;
    detail::prefetch_rows(samples_, batch.row.data(), batch_ < detail::kBatchTile ? batch_ : detail::kBatchTile);
  }

  SamplesAs<T> samples_;
  index_t workers_, classes_;
  double scale_;
  index_t batch_;
  std::uint64_t seed_;
  std::vector<std::int64_t> offset_;
  std::vector<Entry> entry_;
  std::vector<T> scratch_;
  std::vector<Lane> lane_;
};

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
