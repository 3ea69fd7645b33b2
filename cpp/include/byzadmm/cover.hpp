// Small vertex covers of graphs, exactly: at most k nodes that touch every edge.
//
// Nodes of degree 0 and 1, nodes with more than k neighbors, and cycles decide themselves. What is left is bounded by
// the linear relaxation (half of the largest matching of the graph's bipartite double), whose values 0 and 1 are those
// of some smallest cover; then the search branches at a node of the largest degree, at least 3.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "byzadmm/config.hpp"
#include "byzadmm/parallel.hpp"

namespace byzadmm {

/// A set of numbers below n.
class Bits {
 public:
  explicit Bits(index_t n = 0) : word_(static_cast<std::size_t>((n + 63) / 64)) {}

  bool has(index_t i) const { return word_[at(i)] >> (i & 63) & 1; }
  void add(index_t i) { word_[at(i)] |= std::uint64_t{1} << (i & 63); }
  void remove(index_t i) { word_[at(i)] &= ~(std::uint64_t{1} << (i & 63)); }

  Bits& operator|=(const Bits& other) {
    for (std::size_t w = 0; w < word_.size(); ++w) word_[w] |= other.word_[w];
    return *this;
  }
  Bits& operator-=(const Bits& other) {
    for (std::size_t w = 0; w < word_.size(); ++w) word_[w] &= ~other.word_[w];
    return *this;
  }

  index_t count() const {
    index_t all = 0;
    for (const std::uint64_t w : word_) all += __builtin_popcountll(w);
    return all;
  }
  /// Of both sets.
  index_t count(const Bits& other) const {
    index_t all = 0;
    for (std::size_t w = 0; w < word_.size(); ++w) all += __builtin_popcountll(word_[w] & other.word_[w]);
    return all;
  }
  /// The least number of both sets that is in none of `without`; -1 if there is none.
  index_t first(const Bits& other, const Bits& without) const {
    for (std::size_t w = 0; w < word_.size(); ++w)
      if (const std::uint64_t both = word_[w] & other.word_[w] & ~without.word_[w])
        return static_cast<index_t>(64 * w) + __builtin_ctzll(both);
    return -1;
  }
  /// f(i) for the numbers that are also in `other`, in ascending order.
  template <class F>
  void each(const Bits& other, F&& f) const {
    for (std::size_t w = 0; w < word_.size(); ++w)
      for (std::uint64_t both = word_[w] & other.word_[w]; both; both &= both - 1)
        f(static_cast<index_t>(64 * w) + __builtin_ctzll(both));
  }
  template <class F>
  void each(F&& f) const {
    each(*this, f);
  }

 private:
  static std::size_t at(index_t i) { return static_cast<std::size_t>(i) / 64; }
  std::vector<std::uint64_t> word_;
};

/// Covers of parts of one graph.
class CoverSearch {
 public:
  /// The work that one search may take, in visits of the search tree. A tree that branches at degrees of at least 3 has
  /// fewer visits than this for k <= 30, whatever the graph.
  static constexpr index_t kMostVisits = index_t{1} << 18;

  explicit CoverSearch(std::vector<Bits> neighbors)
      : near_(std::move(neighbors)), n_(static_cast<index_t>(near_.size())), mate_(near_.size()), none_(n_) {}

  const Bits& neighbors(index_t i) const { return near_[static_cast<std::size_t>(i)]; }

  /// Whether at most k nodes of `left` touch every edge between nodes of `left`; `cover` is then such a set. False with
  /// gave_up() if the work exceeded the limit.
  bool find(const Bits& left, index_t k, Bits& cover) {
    visits_ = 0;
    return visit(left, k, Bits(n_), cover);
  }
  bool gave_up() const { return visits_ > kMostVisits; }

 private:
  bool visit(Bits left, index_t k, Bits taken, Bits& cover) {
    check_stop();
    if (++visits_ > kMostVisits) return false;
    for (;;) {
      if (k < 0) return false;
      index_t widest = -1, most = 0, edge_ends = 0;
      const Bits before = left;
      bool changed = false;
      before.each([&](index_t i) {
        if (!left.has(i) || k < 0) return;
        const index_t degree = neighbors(i).count(left);
        if (degree == 0) {
          left.remove(i);
        } else if (degree > k) {
          take(i, left, k, taken);
          changed = true;
        } else if (degree == 1) {
          take(neighbors(i).first(left, none_), left, k, taken);
          left.remove(i);
          changed = true;
        } else {
          edge_ends += degree;
          if (degree > most) most = degree, widest = i;
        }
      });
      if (changed) continue;
      if (most == 0) {
        cover = taken;
        return true;
      }
      if (edge_ends > 2 * k * most) return false;
      if (most == 2) {  // cycles: some smallest cover has any one node of each
        take(widest, left, k, taken);
        continue;
      }
      const Relaxed relaxed = relax(left);
      if (relaxed.matched > 2 * k) return false;
      if (relaxed.decided) {
        relaxed.one.each([&](index_t i) { take(i, left, k, taken); });
        left -= relaxed.zero;
        continue;
      }
      // With the widest node, or else with all of its neighbors.
      Bits others = left, with_it = taken;
      index_t fewer = k;
      take(widest, others, fewer, with_it);
      if (visit(others, fewer, std::move(with_it), cover)) return true;
      if (gave_up()) return false;
      left.remove(widest);
      neighbors(widest).each(others, [&](index_t i) { take(i, left, k, taken); });
    }
  }

  static void take(index_t i, Bits& left, index_t& k, Bits& taken) {
    left.remove(i);
    taken.add(i);
    --k;
  }

  struct Relaxed {
    index_t matched;
    bool decided;  // some value is not 1/2
    Bits zero, one;
  };

  /// The linear relaxation on `left`, by a largest matching between two copies of the nodes.
  Relaxed relax(const Bits& left) {
    std::fill(mate_.begin(), mate_.end(), -1);
    Bits free(n_), seen(n_);
    index_t matched = 0;
    left.each([&](index_t i) {
      seen = Bits(n_);
      if (augment(i, left, seen)) ++matched;
      else free.add(i);
    });
    // From the nodes that stayed free, along alternating paths: `from` on the first side, `seen` on the second.
    Bits from(n_);
    seen = Bits(n_);
    std::vector<index_t> waiting;
    const auto reach = [&](index_t i) {
      if (from.has(i)) return;
      from.add(i);
      waiting.push_back(i);
    };
    free.each(reach);
    while (!waiting.empty()) {
      const index_t i = waiting.back();
      waiting.pop_back();
      neighbors(i).each(left, [&](index_t j) {
        if (seen.has(j)) return;
        seen.add(j);
        reach(mate_[static_cast<std::size_t>(j)]);
      });
    }
    Relaxed found{matched, false, Bits(n_), Bits(n_)};
    left.each([&](index_t i) {
      const int sides = int(!from.has(i)) + int(seen.has(i));
      if (sides == 2) found.one.add(i);
      if (sides == 0) found.zero.add(i);
      found.decided = found.decided || sides != 1;
    });
    return found;
  }

  /// Match i of the first side, moving others along an alternating path.
  bool augment(index_t i, const Bits& left, Bits& seen) {
    for (index_t j; (j = neighbors(i).first(left, seen)) >= 0;) {
      seen.add(j);
      index_t& mate = mate_[static_cast<std::size_t>(j)];
      if (mate < 0 || augment(mate, left, seen)) {
        mate = i;
        return true;
      }
    }
    return false;
  }

  std::vector<Bits> near_;
  index_t n_, visits_ = 0;
  std::vector<index_t> mate_;  // of the second side
  const Bits none_;
};

}  // namespace byzadmm
