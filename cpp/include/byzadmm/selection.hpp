// Order statistics of many values per column, a vector of columns at a time, by counting.
//
// Sorting networks grow as n log^2 n; counting how many values are at most a pivot takes a comparison and a subtraction
// per value. Binary search in a sorted sample of 15 rows brackets the wanted rank in at most four counts per lane.
// Interpolation narrows the bracket, and every third step halves it in the ordering of the representation, which bounds
// the work for hostile data. Once few ranks are left, one pass collects the next values in order; only where ties hide
// the rank behind them are the distinct values walked up one by one.
#pragma once

#include "byzadmm/network.hpp"
#include "byzadmm/simd.hpp"

namespace byzadmm {

/// Columns of n rows that are packed together before selection. A whole kilobyte of each row, so that memory is read in
/// runs; less when n is large, so that the copy stays in L2; never less than two cache lines.
template <class T>
constexpr index_t select_columns(index_t n) {
  index_t bytes = 1024;
  while (bytes > 128 && bytes * n > (index_t{1} << 18)) bytes /= 2;
  return bytes / static_cast<index_t>(sizeof(T));
}

/// n values per lane, packed.
template <class T>
class ColumnSelector {
 public:
  using V = simd::vec<T>;
  using I = simd::int_of<T>;
  using M = simd::vec<I>;
  static constexpr int L = simd::lanes<T>;

  ColumnSelector(const V* values, index_t n) : x_(values), n_(n) {}

  /// The values of rank `rank` and `rank` + 1 (0-based) in every lane; the second is +inf past the end. No NaN in x;
  /// infinities order as usual.
  std::array<V, 2> at_rank_and_next(index_t rank) const {
    V sample[kSample];
    take_sample(sample);
    const I want = static_cast<I>(rank);
    // lo < answer <= hi, #(x <= lo) = below. A marker under -inf is not to be had: see the first lines of `finish`.
    V lo = simd::splat(-kInfinity), hi = simd::splat(kInfinity);
    const M bottom = count_up_to(lo);
    M below = bottom, upto = M{} + static_cast<I>(n_);
    const M at_bottom = bottom > want;
    M above[kLevels];
    for (int level = 0; level < kLevels; ++level) {
      const V pivot = in_sample(sample, above, level);
      const M count = count_up_to(pivot);
      above[level] = count <= want;
      narrow(pivot, count, above[level], count > want, lo, hi, below, upto);
    }
    for (int step = 0; simd::any((want - below) >= I(kFew - 1)) && step < kMaxSteps; ++step) {
      const V pivot = step % 3 == 2 ? halfway(lo, hi) : interpolate(lo, hi, below, upto, want);
      const M inside = (pivot > lo) & (pivot < hi);
      if (step % 3 == 2 && !simd::any(inside)) break;  // no number lies strictly between: only ties are left
      const M count = count_up_to(pivot);
      narrow(pivot, count, inside & (count <= want), inside & (count > want), lo, hi, below, upto);
    }
    std::array<V, 2> found = finish(lo, below, want);
    found[0] = at_bottom ? simd::splat(-kInfinity) : found[0];
    const M next_at_bottom = bottom > want + 1;
    found[1] = next_at_bottom ? simd::splat(-kInfinity) : found[1];
    return found;
  }

  /// Values between which the ranks [f, n - f) lie, in every lane: #(x <= cut[0]) = f and #(x <= cut[1]) = n - f.
  /// False if none were found, as where ties leave no such value.  f >= 1.
  bool cuts(index_t f, V (&cut)[2]) const {
    V sample[kSample];
    take_sample(sample);
    // lo < cut <= hi, #(x <= hi) = upto, and #(x <= lo) = below once lo is finite.
    V lo[2], hi[2], pivot[2];
    M below[2] = {}, upto[2], above[2][kLevels];
    const I want[2] = {static_cast<I>(f), static_cast<I>(n_ - f)};
    for (int c = 0; c < 2; ++c) {
      lo[c] = simd::splat(-kInfinity);
      hi[c] = simd::splat(kInfinity);
      upto[c] = M{} + static_cast<I>(n_);
    }
    for (int step = 0; step < kLevels + kMaxTries; ++step) {
      if (step == kLevels && simd::any((lo[0] == -kInfinity) | (hi[1] == kInfinity))) bound(lo, hi, below);
      for (int c = 0; c < 2; ++c)
        pivot[c] = step < kLevels ? in_sample(sample, above[c], step)
                                  : toward(lo[c], hi[c], below[c], upto[c], want[c], step % 4 == 3);
      const auto count = count_up_to(pivot[0], pivot[1]);
      M open{};
      for (int c = 0; c < 2; ++c) {
        const M inside = (pivot[c] > lo[c]) & (pivot[c] < hi[c]), more = count[c] <= want[c];
        if (step < kLevels) above[c][step] = more;
        narrow(pivot[c], count[c], inside & more, inside & ~more, lo[c], hi[c], below[c], upto[c]);
        open |= (below[c] != want[c]) & ((upto[c] - below[c] > I(kFew)) | (lo[c] == -kInfinity));
      }
      if (!simd::any(open)) return collect(lo, hi, below, upto, want, cut);
    }
    return false;
  }

  /// #(x <= pivot), lane by lane.
  M count_up_to(V pivot) const {
    M even{}, odd{};
    index_t i = 0;
    for (; i + 2 <= n_; i += 2) {
      even -= x_[i] <= pivot;
      odd -= x_[i + 1] <= pivot;
    }
    if (i < n_) even -= x_[i] <= pivot;
    return even + odd;
  }

  /// The same for two pivots.
  std::array<M, 2> count_up_to(V pivot, V other) const {
    M even[2] = {}, odd[2] = {};
    index_t i = 0;
    for (; i + 2 <= n_; i += 2) {
      const V a = x_[i], b = x_[i + 1];
      even[0] -= a <= pivot;
      even[1] -= a <= other;
      odd[0] -= b <= pivot;
      odd[1] -= b <= other;
    }
    if (i < n_) {
      even[0] -= x_[i] <= pivot;
      even[1] -= x_[i] <= other;
    }
    return {even[0] + odd[0], even[1] + odd[1]};
  }

 private:
  static constexpr T kInfinity = static_cast<T>(__builtin_inf());
  static constexpr int kFew = 5;  // values above the bracket's lower end that one pass collects
  static constexpr int kLevels = 4, kSample = (1 << kLevels) - 1, kMaxTries = 12;
  static constexpr int kMaxSteps = 3 * 8 * static_cast<int>(sizeof(T));

  void take_sample(V* sample) const {
    for (int s = 0; s < kSample; ++s) sample[s] = x_[(2 * s + 1) * n_ / (2 * kSample)];
    run_network<SortNetwork<kSample>>(sample);
  }

  /// Lane by lane what binary search compares at this level, after it went `above` at the levels before.
  static V in_sample(const V* sample, const M* above, int level) {
    V at[1 << (kLevels - 1)];
    const int count = 1 << level, apart = (kSample + 1) >> level;
    for (int i = 0; i < count; ++i) at[i] = sample[apart / 2 - 1 + i * apart];
    for (int l = level - 1; l >= 0; --l)  // the last turn chose between neighbors
      for (int i = 0; i < 1 << l; ++i) at[i] = above[l] ? at[2 * i + 1] : at[2 * i];
    return at[0];
  }

  static void narrow(V pivot, M count, M above, M below, V& lo, V& hi, M& count_lo, M& count_hi) {
    lo = above ? pivot : lo;
    count_lo = above ? count : count_lo;
    hi = below ? pivot : hi;
    count_hi = below ? count : count_hi;
  }

  /// Ranks want and want + 1, given that `below` values are <= lo: the kFew smallest values above lo, in order, by
  /// insertion; where ties hide the ranks behind them, up from there value by value.
  std::array<V, 2> finish(V lo, M below, I want) const {
    const V infinity = simd::splat(kInfinity);
    V smallest[kFew];
    for (V& s : smallest) s = infinity;
    for (index_t i = 0; i < n_; ++i) {
      V value = x_[i] > lo ? x_[i] : infinity;
      for (V& s : smallest) exchange(s, value);
    }
    std::array<V, 2> found = {infinity, infinity};
    const M offset = want - below;
    for (int s = 0; s < kFew; ++s) {
      found[0] = offset == I(s) ? smallest[s] : found[0];
      found[1] = offset + 1 == I(s) ? smallest[s] : found[1];
    }
    const M hidden = offset + 1 >= I(kFew);
    if (simd::any(hidden)) {
      V at = lo, second = infinity;
      M covered = below, waiting = hidden & (covered <= want + 1);
      V first = infinity;
      while (simd::any(waiting)) {
        at = waiting ? next_above(at) : at;
        const M count = count_up_to(at);
        first = (waiting & (covered <= want) & (count > want)) ? at : first;
        second = (waiting & (count > want + 1)) ? at : second;
        const M end = at == kInfinity;
        covered = waiting ? count : covered;
        waiting &= (covered <= want + 1) & ~end;
      }
      found[0] = hidden ? first : found[0];
      found[1] = hidden ? second : found[1];
    }
    return found;
  }

  /// The smallest value above `v`, +inf if there is none.
  V next_above(V v) const {
    V best = simd::splat(kInfinity);
    for (index_t i = 0; i < n_; ++i) best = simd::min(x_[i] > v ? x_[i] : best, best);
    return best;
  }

  /// Where the count would pass want if the values were spread evenly; a little low, so that `want` stays in reach.
  static V interpolate(V lo, V hi, M count_lo, M count_hi, I want) {
    const V below = __builtin_convertvector(want - count_lo, V) - T(0.5);
    const V all = __builtin_convertvector(count_hi - count_lo, V);
    return lo + (hi - lo) * (below / all);
  }

  /// A pivot that is likely to lie between `want` and the end of the bracket that is farther from it in rank.
  static V toward(V lo, V hi, M below, M upto, I want, bool halve) {
    const V before = __builtin_convertvector(want - below, V), all = __builtin_convertvector(upto - below, V);
    const V slack = all * T(0.125) + T(0.5);
    const V aim = before + before > all ? before - slack : before + slack;
    const V between = lo + (hi - lo) * ((aim + T(0.5)) / (all + T(1)));
    const M inside = (between > lo) & (between < hi);
    if (!halve && !simd::any(~inside)) return between;
    return inside & (M{} - static_cast<I>(!halve)) ? between : halfway(lo, hi);
  }

  /// Finite ends for brackets that the sample left open.
  void bound(V (&lo)[2], V (&hi)[2], M (&below)[2]) const {
    V lowest = x_[0], highest = lowest;
    for (index_t i = 1; i < n_; ++i) {
      lowest = simd::min(lowest, x_[i]);
      highest = simd::max(highest, x_[i]);
    }
    const M least = count_up_to(lowest);
    for (int c = 0; c < 2; ++c) {
      const M open = lo[c] == -kInfinity;
      below[c] = open ? least : below[c];
      lo[c] = open ? lowest : lo[c];
      hi[c] = hi[c] == kInfinity ? highest : hi[c];
    }
  }

  /// The cuts from brackets of at most kFew values.
  bool collect(const V (&lo)[2], const V (&hi)[2], const M (&below)[2], const M (&upto)[2], const I (&want)[2],
               V (&cut)[2]) const {
    V few[2][kFew], top[2];
    for (int c = 0; c < 2; ++c) {
      top[c] = below[c] == want[c] ? lo[c] : hi[c];  // nothing is looked for where the end itself is a cut
      for (V& s : few[c]) s = simd::splat(kInfinity);
    }
    constexpr index_t kBlock = 64;
    index_t hit[kBlock];
    for (index_t first = 0; first < n_; first += kBlock) {
      int hits = 0;
      for (index_t i = first; i < first + kBlock && i < n_; ++i) {
        const V x = x_[i];
        hit[hits] = i;
        hits += simd::any(((x > lo[0]) & (x <= top[0])) | ((x > lo[1]) & (x <= top[1])));
      }
      for (int h = 0; h < hits; ++h)
        for (int c = 0; c < 2; ++c) {
          const V x = x_[hit[h]];
          V value = ((x > lo[c]) & (x <= top[c])) ? x : simd::splat(kInfinity);
          for (V& s : few[c]) exchange(s, value);
        }
    }
    M missing{};
    for (int c = 0; c < 2; ++c) {
      const M left = want[c] - below[c];
      V next = simd::splat(kInfinity);
      cut[c] = lo[c];
      for (int s = 0; s < kFew; ++s) {
        cut[c] = left == I(s + 1) ? few[c][s] : cut[c];
        next = left == I(s) ? few[c][s] : next;
      }
      missing |= (left < 0) | ((left > 0) & ((left < upto[c] - below[c]) & ~(cut[c] < next)));
    }
    return !simd::any(missing);
  }

  /// Order-preserving map between floating point and signed integers (an involution).
  static M flip(M bits) { return bits < 0 ? bits ^ kMagnitude : bits; }
  static constexpr I kMagnitude = static_cast<I>(~(static_cast<std::make_unsigned_t<I>>(1) << (8 * sizeof(I) - 1)));

  static V halfway(V lo, V hi) {
    const M a = flip((M)lo), b = flip((M)hi);
    return (V)flip((a & b) + ((a ^ b) >> 1));
  }

  const V* x_;
  index_t n_;
};

/// Ask for columns [lo, hi) of rows [first, last): the hardware follows a few rows at once, not a hundred.
template <class T, class RowsT>
inline void prefetch_columns(const RowsT& x, index_t first, index_t last, index_t lo, index_t hi) {
  for (index_t i = first; i < last; ++i)
    for (index_t j = lo; j < hi; j += 64 / static_cast<index_t>(sizeof(T))) __builtin_prefetch(x.row[i] + j);
}

/// Copy columns [lo, hi) of the rows into `packed` ((hi-lo)/L groups of n vectors; missing lanes repeat column hi-1).
template <class T, class RowsT>
inline void pack_columns(const RowsT& x, index_t lo, index_t hi, simd::vec<T>* packed) {
  constexpr int L = simd::lanes<T>;
  for (index_t i = 0; i < x.n; ++i) {
    const T* row = x.row[i];
    index_t group = 0;
    for (index_t j = lo; j < hi; j += L, ++group)
      packed[group * x.n + i] = j + L <= hi ? simd::load(row + j) : simd::load_part(row + j, hi - j, row[hi - 1]);
  }
}

}  // namespace byzadmm
