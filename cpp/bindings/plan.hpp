// A plan: what a rule, or a chain of them, makes of the messages of one round, as a line of stages of a kernel each.
//
// Python writes it, for a given number of finite rows (Rule.stages in aggregate/_registry.py), and the loop of SGD runs
// it without Python. What a stage leaves for those after it: rows, at first the messages; squared distances between
// them; a score of each; chosen rows with weights, at first all rows without; and the direction, which is the result.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "neighbor_sets.hpp"
#include "unlocked.hpp"

namespace byzadmm::bindings {

using Indices = std::vector<index_t>;

/// draw(k): the indices of the stages that are drawn anew in iteration k, in their order; None if there are none.
struct Plan {
  std::vector<Stage> stages;
  py::object draw;
};

/// Runs one plan again and again, in memory that it keeps.
template <class T>
class PlanRun {
 public:
  explicit PlanRun(int threads) : threads_(threads) {}

  /// out = what the stages make of x.  start: where centered clipping starts, NaN at first, or nullptr.
  void run(const std::vector<Stage>& stages, Rows<T> x, const std::vector<Indices>& drawn, const T* start, T* out) {
    begin(x);
    start_ = start;
    out_ = out;
    std::size_t draws = 0;
    for (const Stage& stage : stages) {
      require_value(!stage.drawn || draws < drawn.size(), "draw", "an array for every stage that is drawn");
      apply(stage, stage.drawn ? drawn[draws++] : stage.index);
    }
  }

 private:
  void begin(Rows<T> x) {
    rows_ = x;
    squares_ = scores_ = 0;
    votes_.assign(size(x.n), 0);
    choose_all();
  }

  void apply(const Stage& stage, const Indices& index) {
    const index_t n = rows_.n, count = stage.count, f = stage.f;
    const int few = n * n < kSerialWork ? 1 : threads_;  // for what reads no rows
    const double* weight = stage.weight.empty() ? nullptr : stage.weight.data();
    require_value(!weight || stage.weight.size() == size(stage.kind == StageKind::start ? rows_.d : n), "weights",
                  "one per row");
    require_value(f >= 0 && 2 * f < n, "f", "0 <= 2f < n");
    require_value(count >= 0, "count", "an integer >= 0");
    switch (stage.kind) {
      case StageKind::distances: measure(index); break;
      case StageKind::lengths: measure_lengths(index); break;
      case StageKind::krum_scores:
        table().krum_scores(squared(), count, weight, stage.value, scores(n), powers(n), few);
        wide_scores_ = !square_power_.empty();
        break;
      case StageKind::projections: table().projections(squared(), scores(n)); break;
      case StageKind::best: choose(first(count), weight); break;
      case StageKind::vote:
        for (const index_t i : first(count)) ++votes_[size(i)];
        break;
      case StageKind::elected: choose(elected()); break;
      case StageKind::bulyan_choice:
        require_value(count <= n, "count", "an integer in [1, n]");
        choose(found(count, [&](index_t* to) { table().bulyan_choice(squared(), f, count, to); }));
        break;
      case StageKind::least_diameter:
        choose(found(n - f, [&](index_t* to) {
          if (!table().least_diameter(squared(), f, to)) throw py::value_error(stage.message);
        }));
        break;
      case StageKind::least_variance:
        choose(found(n - f, [&](index_t* to) { table().least_variance(squared(), f, to); }));
        break;
      case StageKind::filtered_weights:
        table().filtered_weights(squared(), f, stage.value, scores(n));
        choose(every(rows_.n), score_.data());
        break;
      case StageKind::medoid: choose({k_.medoid(rows_, squared(), weight, scores(n), threads_)}); break;
      case StageKind::weigh: choose(every(rows_.n), weight); break;
      case StageKind::neighbor_means: {
        require_value(count >= 1, "count", "at least one row");
        const index_t size_of = std::min(count, n);
        order_.resize(size(n * size_of));
        table().nearest_rows(squared(), size_of, order_.data(), few);
        const NeighborSets sets(order_.data(), n, size_of, n);
        renew(sets.place,
              [&](T* to) { k_.neighbor_means(rows_, sets.line.data(), sets.different, size_of, to, threads_); });
        break;
      }
      case StageKind::group_means: group_means(index, count); break;
      case StageKind::clip: clip(stage.value, 0); break;
      case StageKind::shorten: {
        const index_t longest = first(count + 1).back();
        clip(score_[size(longest)], power_[size(longest)]);
        break;
      }
      default: combine(stage); break;
    }
  }

  /// Stages that find the direction, or move it.
  void combine(const Stage& stage) {
    const Rows<T> of = members();
    const std::vector<double>& share = stage.kind == StageKind::mean && !stage.weight.empty() ? stage.weight : share_;
    require_value(share.empty() || share.size() == member_.size(), "weights", "one per chosen row");
    const double* weight = share.empty() ? nullptr : share.data();
    const auto even = static_cast<Even>(stage.count);
    switch (stage.kind) {
      case StageKind::row: std::copy(of.row[0], of.row[0] + of.d, out_); break;
      case StageKind::mean: k_.mean(of, weight, out_, threads_); break;
      case StageKind::median: k_.median(of, even, out_, threads_); break;
      case StageKind::trimmed_mean: k_.trimmed_mean(of, stage.f, out_, threads_); break;
      case StageKind::sign_majority: k_.sign_majority(of, out_, threads_); break;
      case StageKind::closest_mean:
        require_value(stage.count >= 1 && stage.count <= of.n, "count", "an integer in [1, n]");
        center_.assign(out_, out_ + of.d);
        k_.closest_mean(of, center_.data(), stage.count, out_, threads_);
        break;
      case StageKind::weighted_median: k_.weighted_median(of, weight, even, out_, threads_); break;
      case StageKind::weighted_trimmed_mean: k_.weighted_trimmed_mean(of, weight, stage.value, out_, threads_); break;
      case StageKind::geometric_median:
        k_.geometric_median(of, weight, stage.value, static_cast<int>(stage.count), out_, scores(of.n), threads_);
        break;
      case StageKind::start:
        if (!stage.weight.empty())
          std::transform(stage.weight.begin(), stage.weight.end(), out_, [](double v) { return static_cast<T>(v); });
        else if (start_ && start_[0] == start_[0]) std::copy(start_, start_ + of.d, out_);
        else k_.median(of, Even::mid, out_, threads_);
        break;
      case StageKind::centered_clip:
        k_.centered_clip(of, stage.value, static_cast<int>(stage.count), out_, scores(of.n), threads_);
        break;
      default: break;
    }
  }

  // --- what stages leave -----------------------------------------------------------------------------------------

  static std::size_t size(index_t n) { return static_cast<std::size_t>(n); }

  SquaredDistances squared() const {
    require_value(squares_ == rows_.n, "stages", "distances of the rows before what compares them");
    return {square_.data(), square_power_.empty() ? nullptr : square_power_.data(), squares_};
  }

  /// Of the rows, or of these columns of them.
  void measure(const Indices& columns) {
    const index_t n = rows_.n;
    Rows<T> of = rows_;
    if (!columns.empty()) {
      for (const index_t j : columns) require_below(j, rows_.d, "index", "columns");
      some_.resize(size(n) * columns.size());
      part_.clear();
      for (index_t i = 0; i < n; ++i) {
        T* to = some_.data() + size(i) * columns.size();
        part_.push_back(to);
        for (const index_t j : columns) *to++ = rows_.row[i][j];
      }
      of = {part_.data(), n, static_cast<index_t>(columns.size())};
    }
    square_.resize(size(n * n));
    square_power_.clear();
    const std::unique_ptr<bool[]> bad(new bool[size(n)]);
    k_.squared_distances(of, square_.data(), square_power_, bad.get(), threads_);
    squares_ = n;
  }

  double* scores(index_t n) {
    wide_scores_ = false;
    score_.resize(size(n));
    scores_ = n;
    return score_.data();
  }
  std::int32_t* powers(index_t n) {
    power_.resize(size(n));
    return power_.data();
  }

  void measure_lengths(const Indices& from) {
    const T* center = nullptr;
    if (!from.empty()) {
      require_below(from[0], rows_.n, "index", "rows");
      center = rows_.row[from[0]];
    }
    k_.lengths(rows_, center, scores(rows_.n), powers(rows_.n), threads_);
    wide_scores_ = true;
    if (center) score_[size(from[0])] = -1;  // first, also among rows that are equal to it
  }

  /// The `count` rows with the least scores, best first.
  Indices first(index_t count) const {
    require_value(scores_ == rows_.n && count >= 1 && count <= rows_.n, "count", "an integer in [1, n], and scores");
    return found(count, [&](index_t* to) {
      table().least_scores(score_.data(), wide_scores_ ? power_.data() : nullptr, rows_.n, count, to);
    });
  }

  template <class Find>
  static Indices found(index_t count, Find&& find) {
    Indices chosen(size(count));
    find(chosen.data());
    return chosen;
  }

  static Indices every(index_t n) {
    Indices all(size(n));
    std::iota(all.begin(), all.end(), index_t{0});
    return all;
  }

  Indices elected() const {
    const index_t most = *std::max_element(votes_.begin(), votes_.end());
    Indices chosen;
    for (index_t i = 0; i < rows_.n; ++i)
      if (votes_[size(i)] == most) chosen.push_back(i);
    return chosen;
  }

  void choose_all() { choose(every(rows_.n)); }

  /// In the order of the index; with weights those of positive weight.
  void choose(Indices rows, const double* weight = nullptr) {
    std::sort(rows.begin(), rows.end());
    member_.clear();
    share_.clear();
    for (const index_t i : rows) {
      if (weight && !(weight[i] > 0)) continue;
      member_.push_back(rows_.row[i]);
      if (weight) share_.push_back(weight[i]);
    }
    require_value(!member_.empty(), "weights", "a row of positive weight");
  }

  Rows<T> members() const { return {member_.data(), static_cast<index_t>(member_.size()), rows_.d}; }

  /// New rows, which make(memory) writes: row i is at `place[i]`, where several may be the same.
  template <class Make>
  void renew(const Indices& place, Make&& make) {
    std::vector<T>& memory = memory_[turn_ ^= 1];  // the other one may hold the rows of now
    memory.resize(place.size() * size(rows_.d));
    make(memory.data());
    std::vector<const T*>& row = row_[turn_];
    row.clear();
    for (const index_t i : place) row.push_back(memory.data() + i * rows_.d);
    begin({row.data(), static_cast<index_t>(row.size()), rows_.d});
  }

  void group_means(const Indices& order, index_t count) {
    const auto length = static_cast<index_t>(order.size());
    require_value(count >= 1 && length >= 1, "count", "groups of at least one row");
    for (const index_t i : order) require_below(i, rows_.n, "index", "rows");
    renew(every((length + count - 1) / count), [&](T* to) {
      for (index_t lo = 0; lo < length; lo += count, to += rows_.d) {
        choose(Indices(order.begin() + lo, order.begin() + std::min(lo + count, length)));
        k_.mean(members(), nullptr, to, threads_);
      }
    });
  }

  void clip(double limit, int power) {
    renew(every(rows_.n), [&](T* to) { k_.clip(rows_, limit, power, to, scores(rows_.n), threads_); });
  }

  const Kernels<T>& k_ = kernels<T>();
  int threads_;
  const T* start_ = nullptr;
  T* out_ = nullptr;

  Rows<T> rows_{};
  std::vector<T> memory_[2];
  std::vector<const T*> row_[2];
  int turn_ = 0;

  index_t squares_ = 0, scores_ = 0;  // rows that have them
  std::vector<double> square_, score_;
  std::vector<std::int32_t> square_power_, power_;
  bool wide_scores_ = false;
  std::vector<T> some_, center_;
  std::vector<const T*> part_;
  Indices order_, votes_;

  std::vector<const T*> member_;
  std::vector<double> share_;
};

}  // namespace byzadmm::bindings
