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
    constexpr int kSample = 15;
    V sample[kSample];
    for (int s = 0; s < kSample; ++s) sample[s] = x_[(2 * s + 1) * n_ / (2 * kSample)];
    run_network<SortNetwork<kSample>>(sample);
    const I want = static_cast<I>(rank);
    // lo < answer <= hi, #(x <= lo) = below. A marker under -inf is not to be had: see the first lines of `finish`.
    V lo = simd::splat(-kInfinity), hi = simd::splat(kInfinity);
    const M bottom = count_up_to(lo);
    M below = bottom, upto = M{} + static_cast<I>(n_);
    const M at_bottom = bottom > want;
    M first{}, last = M{} + I(kSample);  // the part of the sample that is still to be compared: [first, last)
    while (simd::any(first < last)) {
      const M middle = (first + last) >> 1;
      V pivot = hi;
      for (int l = 0; l < L; ++l)
        if (first[l] < last[l]) pivot[l] = sample[middle[l]][l];
      const M open = first < last;
      const M count = count_up_to(pivot);
      narrow(pivot, count, open & (count <= want), open & (count > want), lo, hi, below, upto);
      first = open & (count <= want) ? middle + 1 : first;
      last = open & (count > want) ? middle : last;
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

 private:
  static constexpr T kInfinity = static_cast<T>(__builtin_inf());
  static constexpr int kFew = 5;  // values above the bracket's lower end that one pass collects
  static constexpr int kMaxSteps = 3 * 8 * static_cast<int>(sizeof(T));

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
