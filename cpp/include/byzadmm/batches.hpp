// Where the batch of a worker comes from: its samples, drawn by its stream and fetched ahead of time.
#pragma once

#include <vector>

#include "byzadmm/philox.hpp"
#include "byzadmm/samples.hpp"

namespace byzadmm {

/// The batches of all workers.
///
/// A batch is a few hundred random places in a large file, so the cost is waiting for memory. A thread therefore works
/// on three batches at once: it draws one and asks for its entries, finds the rows of the next, which the gradient asks
/// for as it goes, and computes with the third, whose rows have arrived.
template <class T, class Target>
class Batches {
  struct Turn {
    index_t worker = -1;
    std::int64_t k = 0;
    bool operator!=(const Turn& other) const { return worker != other.worker || k != other.k; }
  };

 public:
  struct Batch {
    Turn turn;
    std::vector<std::int64_t> row;
    std::vector<Target> target;
    const std::int64_t* next = nullptr;  // the rows that this thread most likely takes after these
  };

  explicit Batches(const SharedSamples<T, Target>& all)
      : samples_(all.samples),
        workers_(all.workers),
        size_(all.batch),
        seed_(all.seed),
        offset_(all.offset, all.offset + all.workers + 1) {
    entry_.reserve(static_cast<std::size_t>(offset_.back()));
    for (index_t i = 0; i < workers_; ++i)
      for (std::int64_t e = all.offset[i]; e < all.offset[i + 1]; ++e)
        entry_.push_back({all.part[e], (all.poisoned[i] ? all.flipped_y : all.y)[all.part[e]]});
  }

  const SamplesAs<T>& samples() const { return samples_; }
  index_t workers() const { return workers_; }
  index_t size() const { return size_; }

  void reserve(int threads) {
    const auto size = static_cast<std::size_t>(size_);
    lane_.resize(static_cast<std::size_t>(threads));
    for (Lane& lane : lane_) {
      lane.place.resize(size);
      for (Batch& batch : lane.found) {
        batch.row.resize(size);
        batch.target.resize(size);
      }
    }
  }

  /// The worker's batch of iteration k, valid until the thread of this slot takes another.
  const Batch& take(index_t worker, std::int64_t k, int slot) {
    Lane& lane = lane_[static_cast<std::size_t>(slot)];
    const Turn now{worker, k};
    lane.learn(now);
    if (lane.found[1].turn != now) find(lane, now);
    std::swap(lane.found[0], lane.found[1]);
    const Turn next = lane.after(now);
    lane.found[0].next = next.worker < workers_ ? lane.found[1].row.data() : nullptr;
    if (next.worker < workers_) {
      find(lane, next);
      if (const Turn later = lane.after(next); later.worker < workers_) draw(lane, later);
    }
    return lane.found[0];
  }

 private:
  /// A sample as a worker sees it, in the order of `part`.
  struct Entry {
    std::int64_t row;
    Target target;
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
                    static_cast<std::uint64_t>(hi - lo), lane.place.data(), size_);
    for (std::int64_t& place : lane.place) {
      place += lo;
      __builtin_prefetch(entry_.data() + place);
    }
    lane.drawn = turn;
  }

  /// found[1] = the batch of a turn.
  void find(Lane& lane, const Turn& turn) const {
    if (lane.drawn != turn) draw(lane, turn);
    Batch& batch = lane.found[1];
    for (std::size_t b = 0; b < lane.place.size(); ++b) {
      const Entry& entry = entry_[static_cast<std::size_t>(lane.place[b])];
      batch.row[b] = entry.row;
      batch.target[b] = entry.target;
    }
    batch.turn = turn;
  }

  SamplesAs<T> samples_;
  index_t workers_, size_;
  std::uint64_t seed_;
  std::vector<std::int64_t> offset_;
  std::vector<Entry> entry_;
  std::vector<Lane> lane_;
};

}  // namespace byzadmm
