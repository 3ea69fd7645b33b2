// Rows in order of a number: those with the least scores, and the nearest others of each. Nothing here reads the rows.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "byzadmm/parallel.hpp"
#include "byzadmm/wide.hpp"

namespace byzadmm {

/// The `count` rows with the least score_i, or score_i * 2^exponent_i where exponents are given (ordered as Wide), best
/// first, the lowest index first among equals.  score, exponent: (n), no NaN; chosen: (count).
inline void least_scores(const double* score, const std::int32_t* exponent, index_t n, index_t count, index_t* chosen) {
  std::vector<index_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), index_t{0});
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [=](index_t a, index_t b) {
    if (exponent && exponent[a] != exponent[b]) return exponent[a] < exponent[b];
    return score[a] != score[b] ? score[a] < score[b] : a < b;
  });
  std::copy(order.begin(), order.begin() + count, chosen);
}

/// neighbor_i = i and the count - 1 rows nearest to it, the lowest index first among equally near ones, in no order.
/// neighbor: (n, count).
inline void nearest_rows(const SquaredDistances& squared, index_t count, index_t* neighbor, int threads) {
  visit(squared, [&](const auto* from) {
    const index_t n = squared.n;
    for_tasks(n, threads, [&](index_t i, int) {
      const auto* row = from + i * n;
      std::vector<index_t> others(static_cast<std::size_t>(n));
      std::iota(others.begin(), others.end(), index_t{0});
      std::swap(others[0], others[static_cast<std::size_t>(i)]);
      if (count > 1)
        std::nth_element(others.begin() + 1, others.begin() + count - 1, others.end(),
                         [=](index_t a, index_t b) { return row[a] != row[b] ? row[a] < row[b] : a < b; });
      std::copy(others.begin(), others.begin() + count, neighbor + i * count);
    });
  });
}

}  // namespace byzadmm
