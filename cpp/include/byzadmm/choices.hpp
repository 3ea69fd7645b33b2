// What a caller chooses beside its arrays: enumerations with the names that a person types, and small records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "byzadmm/config.hpp"

namespace byzadmm {

/// Names<E>::of[static_cast<int>(e)] is the name of e. The only list of names: Python reads this one.
template <class E>
struct Names;

/// What the median of an even number of values is: the midpoint of the middle two, the lower or the upper one.
enum class Even { mid, low, high };
template <>
struct Names<Even> {
  static constexpr const char* of[] = {"mid", "low", "high"};
};

/// First word of every stream of random numbers: two purposes never share a draw. Those from rule on, and user_attack,
/// are drawn in Python.
enum class Purpose : std::uint64_t {
  batch,
  attack,
  user_attack,
  gradient_noise,
  rule,
  participation,
  layers,
  validation,    // batches of the master's own samples
  perturbation,  // noise that the master adds to its model
  snapshot,      // when a worker takes a new snapshot (LSVRG)
  delay,         // how long a worker computes (byzadmm.delays)
  edge,          // which edges of a time-varying graph are there (byzadmm.graphs.Flaky)
  start          // where the nodes of a graph start
};
template <>
struct Names<Purpose> {
  static constexpr const char* of[] = {"batch",         "attack", "user_attack", "gradient_noise", "rule",
                                       "participation", "layers", "validation",  "perturbation",   "snapshot",
                                       "delay",         "edge",   "start"};
};

/// A stream of random numbers (philox.hpp): any part of it can be computed alone.
struct Stream {
  std::uint64_t seed;
  std::uint64_t s0, s1, s2;
};

enum class AttackKind {
  honest,            // the honest message itself (label flipping poisons the gradient, not the message)
  gaussian,          // N(shift, value^2)
  sign_flip,         // value * own message
  duplicate,         // the message of regular worker `worker`
  small_value,       // x0 - value / max(k (k+1), 1)                 (Example ex)
  large_value,       // x0 - value (-1)^k, value = 4 lambda / beta   (Example ex)
  dual_oscillation,  // value (-1)^k, value = lambda                 (section 4.2)
  constant,          // value: zero, the same value, NaN, an infinity
  alie,              // mean - value * std of the regular messages (Baruch et al., NeurIPS 2019)
  inner_product,     // -value * mean of the regular messages (Xie et al., UAI 2019)
};
template <>
struct Names<AttackKind> {
  static constexpr const char* of[] = {"honest",      "gaussian",         "sign_flip", "duplicate", "small_value",
                                       "large_value", "dual_oscillation", "constant",  "alie",      "inner_product"};
};

struct Attack {
  AttackKind kind = AttackKind::honest;
  double value = 0;
  index_t worker = 0;
  double shift = 0;
};

/// What a stage of a plan (bindings/plan.hpp) makes of the rows, or of what the stages before it left.
enum class StageKind {
  distances,         // squared distances between the rows, or between some of their columns (index)
  lengths,           // scores: lengths of the rows, or distances from row index[0], which comes first
  krum_scores,       // scores: sums over `count` neighbors, of weighted rows up to the mass `value`
  projections,       // scores: how far rows stand out along the direction in which they differ most
  best,              // the `count` rows with the least scores; of weighted ones, those of positive weight
  vote,              // one vote for each of the `count` rows with the least scores
  elected,           // the rows with the most votes
  bulyan_choice,     // `count` rows, for f Byzantine ones
  least_diameter,    // n - f rows; `message` says that the search was given up
  least_variance,    // n - f rows
  filtered_weights,  // rows and weights, for f Byzantine rows
  medoid,            // the row with the least sum of distances to weighted rows
  weigh,             // rows of positive weight
  row,               // the direction is the chosen row
  mean,              // and so on: what the rule of that name makes of the chosen rows and their weights
  median,            // of an even number: Even(count)
  trimmed_mean,      // f
  sign_majority,
  closest_mean,           // of the `count` values closest to the direction that a stage before it found
  weighted_median,        // Even(count)
  weighted_trimmed_mean,  // without the weight `value` at both ends
  geometric_median,       // tolerance `value`, `count` iterations
  start,                  // the direction is where centered clipping starts, or the median if it has no memory
  centered_clip,          // of the length `value`, `count` times
  neighbor_means,         // new rows: means of the `count` nearest
  group_means,            // new rows: means of `count` rows each, one after another in the order `index`
  clip,                   // new rows: shortened to the length `value`
  shorten,                // new rows: shortened to the score of rank `count`
};
template <>
struct Names<StageKind> {
  static constexpr const char* of[] = {"distances",
                                       "lengths",
                                       "krum_scores",
                                       "projections",
                                       "best",
                                       "vote",
                                       "elected",
                                       "bulyan_choice",
                                       "least_diameter",
                                       "least_variance",
                                       "filtered_weights",
                                       "medoid",
                                       "weigh",
                                       "row",
                                       "mean",
                                       "median",
                                       "trimmed_mean",
                                       "sign_majority",
                                       "closest_mean",
                                       "weighted_median",
                                       "weighted_trimmed_mean",
                                       "geometric_median",
                                       "start",
                                       "centered_clip",
                                       "neighbor_means",
                                       "group_means",
                                       "clip",
                                       "shorten"};
};

struct Stage {
  StageKind kind;
  index_t count = 0, f = 0;
  double value = 0;
  std::vector<double> weight;  // of all rows, or the center to start from
  std::vector<index_t> index;
  bool drawn = false;  // the index is drawn anew in every iteration
  std::string message;
};

/// Who takes part in training, who is Byzantine and what those send, and whom the master has eliminated.
struct Participants {
  index_t m, d;                    // workers, and elements of a message
  std::vector<index_t> byzantine;  // worker numbers, ascending
  Attack attack;
  std::uint64_t seed;
  std::int64_t* eliminated;  // (m): the iteration in which worker i was eliminated, or -1
  int threads;

  index_t q() const { return static_cast<index_t>(byzantine.size()); }

  /// slot_of()[i]: the position of worker i among the Byzantine ones, or -1.
  std::vector<index_t> slot_of() const {
    std::vector<index_t> slot(static_cast<std::size_t>(m), -1);
    for (std::size_t s = 0; s < byzantine.size(); ++s)
      slot[static_cast<std::size_t>(byzantine[s])] = static_cast<index_t>(s);
    return slot;
  }
};

/// Iterations first .. first + count - 1 with these step sizes of master and workers, one per iteration.
struct Schedule {
  const double *master, *worker;  // (count) each
  std::int64_t first;
  index_t count;
};

struct AdmmParameters {
  double lam, beta, rho;
};
struct RsaParameters {
  double lam, rho;
};
struct SgdParameters {
  double rho, momentum;  // momentum 0: the gradients themselves are sent
  bool ideal;            // the Byzantine workers take no part
};

/// residual = max(0, ||sum_{x_i != z} w_i (x_i - z) / ||x_i - z|| || - weight of the rows equal to z) / sum_i w_i, of
/// the z that is returned, rounded to T.
/// converged: that of z before it was rounded is within the tolerance.
struct GeometricMedianInfo {
  int iterations;
  bool converged;
  double residual;
};

}  // namespace byzadmm
