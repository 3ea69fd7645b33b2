// Choosing rows by their distances to others: Krum's scores, and Bulyan's repeated choice. Only krum() reads the rows.
// N is the type of the squared distances: double, or Wide where they leave its range.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "byzadmm/distances.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/wide.hpp"

namespace byzadmm {

/// score_i = sum of squared_ik over the `neighbors` nearest others k != i (all of them if there are fewer).
/// squared: (n, n), no NaN; score: (n).  Equal rows have equal scores: the sum runs in the order of the index.
template <class N>
void krum_scores(const N* squared, index_t n, index_t neighbors, N* score, int threads) {
  const index_t count = std::min(neighbors, n - 1);
  const std::unique_ptr<N[]> scratch(new N[static_cast<std::size_t>(std::min<index_t>(threads, n) * n)]);
  for_tasks(n, threads, [&](index_t i, int slot) {
    const N* row = squared + i * n;
    N* others = scratch.get() + slot * n;
    if (count == 0) {
      score[i] = 0;
      return;
    }
    std::copy(row, row + i, others);
    std::copy(row + i + 1, row + n, others + i);
    std::nth_element(others, others + count - 1, others + n - 1);
    const N radius = others[count - 1];
    N sum = 0;
    index_t inside = 0;
    for (index_t k = 0; k < n; ++k) {
      const bool near = k != i && row[k] < radius;
      sum += near ? row[k] : N(0);
      inside += near;
    }
    for (; inside < count; ++inside) sum += radius;
    score[i] = sum;
  });
}

/// The same where row k counts as weight_k rows: neighbors, nearest first, up to a total weight of `mass`; infinite for
/// a row of weight 0.
template <class N>
void krum_scores(const N* squared, const double* weight, index_t n, double mass, N* score, int threads) {
  const std::unique_ptr<index_t[]> scratch(new index_t[static_cast<std::size_t>(std::min<index_t>(threads, n) * n)]);
  // What rounding leaves of the mass is no share of a row, which may be any distance away.
  const double rounding = 4 * static_cast<double>(n) * std::numeric_limits<double>::epsilon() * mass;
  for_tasks(n, threads, [&](index_t i, int slot) {
    const N* row = squared + i * n;
    index_t *order = scratch.get() + slot * n, *end = order;
    for (index_t k = 0; k < n; ++k)
      if (k != i && weight[k] > 0) *end++ = k;
    std::sort(order, end, [&](index_t a, index_t b) { return row[a] != row[b] ? row[a] < row[b] : a < b; });
    N sum = weight[i] > 0 ? 0 : std::numeric_limits<double>::infinity();
    double left = mass;
    for (const index_t* k = order; k != end && left > rounding; ++k) {
      const double share = std::min(weight[*k], left);
      sum += share * row[*k];
      left -= share;
    }
    score[i] = sum;
  });
}

/// Bulyan's choice: `count` times the row with the least Krum score among those left (the lowest index among equals),
/// each with max(1, left - f - 2) neighbors.  chosen: (count), in the order of the choice.  After a choice every score
/// loses the chosen row or its farthest neighbor; it is summed again once less than a sixteenth of the last sum
/// remains, so that what rounding left of the far terms stays small.
template <class N>
void bulyan_choice(const N* squared, index_t n, index_t f, index_t count, index_t* chosen) {
  const auto size = static_cast<std::size_t>(n);
  std::vector<index_t> order(size * size), rank(size * size), last(size);  // order[i]: others, nearest first
  std::vector<N> score(size), summed(size);
  std::vector<char> left(size, 1);
  const N infinite = std::numeric_limits<double>::infinity();
  index_t neighbors = std::max<index_t>(1, n - f - 2);
  const auto sum_again = [&](index_t i) {
    const index_t* others = order.data() + i * n;
    N sum = 0;
    index_t taken = 0;
    for (index_t p = 0; p < n - 1 && taken < neighbors; ++p)
      if (left[others[p]]) {
        sum += squared[i * n + others[p]];
        last[i] = p;
        ++taken;
      }
    score[i] = summed[i] = sum;
  };
  for (index_t i = 0; i < n; ++i) {
    check_stop();
    const N* row = squared + i * n;
    index_t *others = order.data() + i * n, *end = others;
    for (index_t k = 0; k < n; ++k)
      if (k != i) *end++ = k;
    std::sort(others, end, [&](index_t a, index_t b) { return row[a] != row[b] ? row[a] < row[b] : a < b; });
    for (index_t p = 0; p < n - 1; ++p) rank[i * n + others[p]] = p;
    sum_again(i);
  }
  for (index_t c = 0; c < count; ++c) {
    check_stop();
    index_t best = 0;
    while (!left[best]) ++best;
    for (index_t i = best + 1; i < n; ++i)
      if (left[i] && score[i] < score[best]) best = i;
    chosen[c] = best;
    left[best] = 0;
    const index_t fewer = std::max<index_t>(1, n - c - 1 - f - 2);
    const bool shrinks = fewer < neighbors;
    neighbors = fewer;
    for (index_t i = 0; i < n; ++i) {
      if (!left[i]) continue;
      const index_t* others = order.data() + i * n;
      const bool was_near = rank[i * n + best] <= last[i];
      if (!was_near && !shrinks) continue;
      const N gone = squared[i * n + (was_near ? best : others[last[i]])];
      // With one neighbor, rows that are each other's nearest tie exactly: a rounded difference would decide.
      if (!shrinks || neighbors == 1 || !(gone < infinite) || score[i] - gone < 0.0625 * summed[i]) {
        sum_again(i);
        continue;
      }
      score[i] -= gone;
      if (!was_near) --last[i];
      while (last[i] > 0 && !left[others[last[i]]]) --last[i];
    }
  }
}

/// The scores of squared distances of either kind, weighted by `mass` where weights are given, else of `neighbors`;
/// score_i * 2^exponent_i where the distances have exponents.
inline void krum_scores(const SquaredDistances& squared, index_t neighbors, const double* weight, double mass,
                        double* score, std::int32_t* exponent, int threads) {
  visit(squared, [&](const auto* from) {
    using N = std::decay_t<decltype(*from)>;
    std::vector<N> sum(static_cast<std::size_t>(squared.n));
    if (weight) krum_scores(from, weight, squared.n, mass, sum.data(), threads);
    else krum_scores(from, squared.n, neighbors, sum.data(), threads);
    for (index_t i = 0; i < squared.n; ++i) {
      const Wide split = sum[static_cast<std::size_t>(i)];
      score[i] = squared.exponent ? split.mantissa : static_cast<double>(sum[static_cast<std::size_t>(i)]);
      exponent[i] = split.exponent;
    }
  });
}

/// The number of the row with the least Krum score (n-f-2 neighbors), the lowest among equals.  x: (n, d), n >= 2f + 3.
/// A row that is not finite is infinitely far from all others: at most f of them are never chosen.
template <class T>
index_t krum(Rows<T> x, index_t f, int threads) {
  const auto n = static_cast<std::size_t>(x.n);
  std::vector<double> squared(n * n);
  std::vector<std::int32_t> exponent;
  const std::unique_ptr<bool[]> bad(new bool[n]);
  squared_distances(x, squared.data(), exponent, bad.get(), threads);
  index_t best = 0;
  visit({squared.data(), exponent.empty() ? nullptr : exponent.data(), x.n}, [&](const auto* from) {
    std::vector<std::decay_t<decltype(*from)>> score(n);
    krum_scores(from, x.n, x.n - f - 2, score.data(), threads);
    best = std::min_element(score.begin(), score.end()) - score.begin();
  });
  return best;
}

inline void bulyan_choice(const SquaredDistances& squared, index_t f, index_t count, index_t* chosen) {
  visit(squared, [&](const auto* from) { bulyan_choice(from, squared.n, f, count, chosen); });
}

}  // namespace byzadmm
