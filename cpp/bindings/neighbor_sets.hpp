// The neighbors of every row as sets, each of them once: rows with the same neighbors have the same mean, and under
// attack, regular rows mostly have each other.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "byzadmm/views.hpp"

namespace byzadmm::bindings {

/// line: (different, size), in ascending order; place[i] <= i: which of them row i has.
struct NeighborSets {
  index_t different = 0;
  std::vector<index_t> line, place;

  /// neighbor: (count, size), indices below n, none twice in a line.
  NeighborSets(const index_t* neighbor, index_t count, index_t size, index_t n) {
    std::map<std::vector<std::uint64_t>, index_t> known;
    for (index_t i = 0; i < count; ++i) {
      std::vector<std::uint64_t> member(static_cast<std::size_t>((n + 63) / 64));
      for (const index_t* of = neighbor + i * size; of < neighbor + (i + 1) * size; ++of)
        member[static_cast<std::size_t>(*of / 64)] |= std::uint64_t{1} << *of % 64;
      const auto found = known.try_emplace(std::move(member), different);
      place.push_back(found.first->second);
      if (!found.second) continue;
      ++different;
      const std::vector<std::uint64_t>& bits = found.first->first;
      for (index_t k = 0; k < n; ++k)
        if (bits[static_cast<std::size_t>(k / 64)] >> k % 64 & 1) line.push_back(k);
      line.resize(static_cast<std::size_t>(different * size), line.back());
    }
  }
};

}  // namespace byzadmm::bindings
