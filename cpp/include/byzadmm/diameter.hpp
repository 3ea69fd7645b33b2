// The rows with the least diameter. Nothing here reads the rows, and only the order of their distances counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "byzadmm/cover.hpp"
#include "byzadmm/wide.hpp"

namespace byzadmm {

/// The n - f rows whose largest pairwise distance is least; of several such sets the lexicographically smallest list.
/// squared: (n, n), no NaN; 2f < n; chosen: (n - f), ascending.  False: the search was given up.
///
/// Rows with all distances at most t exist iff at most f rows touch all pairs that are farther apart. The least t is
/// found by bisection of the distances in order.
template <class N>
bool least_diameter(const N* squared, index_t n, index_t f, index_t* chosen) {
  std::vector<N> distance;
  distance.reserve(static_cast<std::size_t>(n * (n - 1) / 2));
  for (index_t i = 0; i < n; ++i) distance.insert(distance.end(), squared + i * n + i + 1, squared + (i + 1) * n);
  check_stop();
  std::sort(distance.begin(), distance.end());
  distance.erase(std::unique(distance.begin(), distance.end()), distance.end());

  Bits all(n);
  for (index_t i = 0; i < n; ++i) all.add(i);
  const auto farther_than = [&](N t) {
    std::vector<Bits> far(static_cast<std::size_t>(n), Bits(n));
    for (index_t i = 0; i < n; ++i)
      for (index_t k = 0; k < n; ++k)
        if (t < squared[i * n + k]) far[static_cast<std::size_t>(i)].add(k);
    return CoverSearch(std::move(far));
  };
  Bits excluded(n);
  index_t low = 0, high = static_cast<index_t>(distance.size()) - 1;  // the least t is distance[low .. high]
  while (low < high) {
    const index_t middle = (low + high) / 2;
    CoverSearch search = farther_than(distance[static_cast<std::size_t>(middle)]);
    if (search.find(all, f, excluded)) high = middle;
    else if (search.gave_up()) return false;
    else low = middle + 1;
  }
  CoverSearch search = farther_than(distance.empty() ? N(0) : distance[static_cast<std::size_t>(low)]);
  if (!search.find(all, f, excluded)) return false;

  // Row by row: chosen if the rows chosen so far and this one are part of such a set; `excluded` says so for most.
  Bits open = all;
  index_t spare = f;  // how many of the open rows may be excluded
  for (index_t i = 0, count = 0; count < n - f; ++i) {
    if (!open.has(i)) continue;
    open.remove(i);
    const index_t lost = search.neighbors(i).count(open);
    bool fits = !excluded.has(i);
    if (!fits && lost <= spare) {
      Bits others = open, found(n);
      others -= search.neighbors(i);
      fits = search.find(others, spare - lost, found);
      if (search.gave_up()) return false;
      if (fits) {
        excluded = found;
        search.neighbors(i).each(open, [&](index_t k) { excluded.add(k); });
      }
    }
    if (fits) {
      chosen[count++] = i;
      open -= search.neighbors(i);
      spare -= lost;
    } else {
      --spare;
    }
  }
  return true;
}

inline bool least_diameter(const SquaredDistances& squared, index_t f, index_t* chosen) {
  bool found = false;
  visit(squared, [&](const auto* from) { found = least_diameter(from, squared.n, f, chosen); });
  return found;
}

}  // namespace byzadmm
