// Neighborhood rules at every node of a graph, a task each: IOS (and gossip, which is IOS without exclusions),
// BRIDGE-T, W-MSR.
#pragma once

#include <algorithm>
#include <limits>

#include "byzadmm/clipping.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/median.hpp"
#include "byzadmm/rsa.hpp"

namespace byzadmm {

namespace detail {

/// Room for the rows of one node: its own, then those that it heard.
template <class T>
struct Neighborhood {
  std::vector<const T*> row;
  std::vector<double> weight, mantissa;
  std::vector<std::int32_t> exponent;
  std::vector<T> center, ends;

  void drop(index_t place) {
    row.erase(row.begin() + place);
    weight.erase(weight.begin() + place);
  }
};

/// rule(neighborhood, f_i, out_i) for every node, whose own row is the first; f_i < 0: the own row is the result.
template <class T, class Rule>
void for_neighborhoods(const T* own, Heard<T> heard, const double* weight, const double* own_weight, const index_t* f,
                       T* out, int threads, Rule&& rule) {
  const index_t m = heard.m, d = heard.d;
  index_t most = 1;
  for (index_t i = 0; i < m; ++i) most = std::max(most, heard.offset[i + 1] - heard.offset[i] + 1);
  std::vector<Neighborhood<T>> room(static_cast<std::size_t>(std::min<index_t>(threads, m)));
  for (auto& here : room) {
    const auto size = static_cast<std::size_t>(most);
    here.row.reserve(size);
    here.weight.reserve(size);
    here.mantissa.resize(size);
    here.exponent.resize(size);
    here.center.resize(static_cast<std::size_t>(d));
  }
  for_tasks(m, threads, [&](index_t i, int slot) {
    if (f[i] < 0) {
      std::copy(own + i * d, own + (i + 1) * d, out + i * d);
      return;
    }
    Neighborhood<T>& here = room[static_cast<std::size_t>(slot)];
    here.row.assign(1, own + i * d);
    here.weight.assign(1, own_weight[i]);
    for (index_t l = heard.offset[i]; l < heard.offset[i + 1]; ++l)
      if (heard.index[l] >= 0) {
        here.row.push_back(heard.table[heard.index[l]]);
        here.weight.push_back(weight[l]);
      }
    rule(here, f[i], out + i * d);
  });
}

constexpr index_t kSubsequenceTile = 128;

/// W-MSR of columns [lo, hi), at most kSubsequenceTile: row[0] is the own one, `largest` and `smallest` have room for b
/// vectors.
///
/// With H the b-th largest of the neighbors' values, those above it are dropped if it is larger than the own value, and
/// as many equal to it as make b; else all that are larger than the own one. The same below.
template <class T>
void subsequence_mean(const std::vector<const T*>& row, index_t b, T* BYZ_RESTRICT largest, T* BYZ_RESTRICT smallest,
                      index_t lo, index_t hi, T* out) {
  using V = simd::vec<T>;
  constexpr index_t size = kSubsequenceTile;
  const V one = simd::splat(T(1)), none = simd::splat(T(0)), far = simd::splat(std::numeric_limits<T>::infinity());
  const index_t width = hi - lo, n = static_cast<index_t>(row.size());
  // Kept are the values between two bounds, and so many of those that are equal to one.
  T above[size], below[size], at_above[size], at_below[size], count[size], least[size], most[size], kept[size];
  simd::for_vectors<T>(0, width, [&](index_t j, auto load, auto store) {
    const V own = load(row[0] + lo + j);
    for (index_t s = 0; s < b; ++s) {
      simd::store(largest + s * simd::lanes<T>, -far);
      simd::store(smallest + s * simd::lanes<T>, far);
    }
    for (index_t r = 1; r < n; ++r) {
      V up = load(row[static_cast<std::size_t>(r)] + lo + j), down = up;
      for (index_t s = 0; s < b; ++s) {  // sorted from the ends; what does not fit is passed on
        T *top = largest + s * simd::lanes<T>, *low = smallest + s * simd::lanes<T>;
        const V t = simd::load(top), l = simd::load(low);
        simd::store(top, simd::max(t, up));
        simd::store(low, simd::min(l, down));
        up = simd::min(t, up);
        down = simd::max(l, down);
      }
    }
    const V t = b ? simd::load(largest + (b - 1) * simd::lanes<T>) : far;
    const V l = b ? simd::load(smallest + (b - 1) * simd::lanes<T>) : -far;
    const auto cut_above = t > own, cut_below = l < own;
    const V high = cut_above ? t : own, low = cut_below ? l : own;
    V inside = none, up = none, down = none;
    for (index_t r = 1; r < n; ++r) {
      const V v = load(row[static_cast<std::size_t>(r)] + lo + j);
      inside += (v > low) & (v < high) ? one : none;
      up += v >= high ? one : none;
      down += v <= low ? one : none;
    }
    // Values equal to the own one, where that is the bound, are kept: those beyond it are counted apart.
    V over = none, under = none;
    for (index_t r = 1; r < n; ++r) {
      const V v = load(row[static_cast<std::size_t>(r)] + lo + j);
      over += v > own ? one : none;
      under += v < own ? one : none;
    }
    const V dropped = simd::splat(static_cast<T>(b));
    up -= cut_above ? dropped : over;
    down -= cut_below ? dropped : under;
    down = (low < high) ? down : none;  // both are the own one: counted once
    if (!b) up = down = none;
    store(above + j, high);
    store(below + j, low);
    store(at_above + j, up);
    store(at_below + j, down);
    store(count + j, inside + up + down + one);
    store(most + j, up > none ? high : own);
    store(least + j, down > none ? low : own);
  });
  double share[size], sum[size];
  for (index_t j = 0; j < width; ++j) {
    share[j] = 1.0 / static_cast<double>(count[j]);
    sum[j] = static_cast<double>(row[0][lo + j]) * share[j];
    if (at_above[j] > 0) sum[j] += static_cast<double>(above[j]) * (static_cast<double>(at_above[j]) * share[j]);
    if (at_below[j] > 0) sum[j] += static_cast<double>(below[j]) * (static_cast<double>(at_below[j]) * share[j]);
  }
  for (index_t r = 1; r < n; ++r) {
    const T* value = row[static_cast<std::size_t>(r)] + lo;
    simd::for_vectors<T>(0, width, [&](index_t j, auto load, auto store) {
      const V v = load(value + j), lowest = load(least + j), highest = load(most + j);
      const auto taken = (v > load(below + j)) & (v < load(above + j));
      store(kept + j, taken ? v : none);
      store(least + j, taken ? simd::min(lowest, v) : lowest);
      store(most + j, taken ? simd::max(highest, v) : highest);
    });
#pragma GCC ivdep
    for (index_t j = 0; j < width; ++j) sum[j] += static_cast<double>(kept[j]) * share[j];
  }
  for (index_t j = 0; j < width; ++j) {  // rounding must not take a mean out of the range of its values
    const double lowest = static_cast<double>(least[j]), highest = static_cast<double>(most[j]);
    out[lo + j] = static_cast<T>(sum[j] < lowest ? lowest : sum[j] > highest ? highest : sum[j]);
  }
}

}  // namespace detail

/// out_i = weighted mean of own_i and what node i heard without f_i rows, each of them the farthest from the weighted
/// mean of all that remain, the first of equally far ones.  own, out: (m, d), distinct; weight: (links); own_weight, f:
/// (m), f_i at most the rows heard, or negative for own_i.
template <class T>
BYZ_NOINLINE void scissor_neighbors(const T* own, Heard<T> heard, const double* weight, const double* own_weight,
                                    const index_t* f, T* out, int threads) {
  const index_t d = heard.d;
  detail::for_neighborhoods(
      own, heard, weight, own_weight, f, out, threads, [=](detail::Neighborhood<T>& here, index_t b, T* to) {
        const auto rows = [&](index_t first) {
          return Rows<T>{here.row.data() + first, static_cast<index_t>(here.row.size()) - first, d};
        };
        for (index_t round = 0; round < b; ++round) {
          mean<T>(rows(0), here.weight.data(), to, 1);
          lengths<T>(rows(1), to, here.mantissa.data(), here.exponent.data(), 1);
          index_t farthest = 0;
          for (index_t r = 1; r < rows(1).n; ++r) {
            const auto at = static_cast<std::size_t>(r), best = static_cast<std::size_t>(farthest);
            if (std::make_pair(here.exponent[at], here.mantissa[at]) >
                std::make_pair(here.exponent[best], here.mantissa[best]))
              farthest = r;
          }
          here.drop(1 + farthest);
        }
        mean<T>(rows(0), here.weight.data(), to, 1);
      });
}

/// out_i = per column, the mean of own_i and what node i heard without the f_i largest and f_i smallest of the latter.
/// own, out: (m, d), distinct; f: (m), 2 f_i less than the rows heard, or negative for own_i.
template <class T>
BYZ_NOINLINE void trim_neighbors(const T* own, Heard<T> heard, const index_t* f, T* out, int threads) {
  const index_t d = heard.d;
  const std::vector<double> ones(static_cast<std::size_t>(std::max(heard.offset[heard.m], heard.m)), 1.0);
  detail::for_neighborhoods(own, heard, ones.data(), ones.data(), f, out, threads,
                            [=](detail::Neighborhood<T>& here, index_t b, T* to) {
                              const auto n = static_cast<index_t>(here.row.size()) - 1;
                              trimmed_mean<T>(Rows<T>{here.row.data() + 1, n, d}, b, here.center.data(), 1);
                              const T* both[] = {here.row[0], here.center.data()};
                              const double share[] = {1.0, static_cast<double>(n - 2 * b)};
                              mean<T>(Rows<T>{both, 2, d}, share, to, 1);
                            });
}

/// out_i = per column, the mean of own_i and what is left of the values that node i heard: of those larger than own_i
/// without the f_i largest, of those smaller without the f_i smallest.  own, out: (m, d), distinct; f: (m), negative
/// for own_i.
template <class T>
BYZ_NOINLINE void subsequence_neighbors(const T* own, Heard<T> heard, const index_t* f, T* out, int threads) {
  const index_t d = heard.d;
  const std::vector<double> ones(static_cast<std::size_t>(std::max(heard.offset[heard.m], heard.m)), 1.0);
  detail::for_neighborhoods(own, heard, ones.data(), ones.data(), f, out, threads,
                            [=](detail::Neighborhood<T>& here, index_t declared, T* to) {
                              const index_t n = static_cast<index_t>(here.row.size()) - 1;
                              const index_t b = std::min(declared, n), room = b * simd::lanes<T>;
                              here.ends.resize(static_cast<std::size_t>(2 * room));
                              T *largest = here.ends.data(), *smallest = largest + room;
                              for (index_t lo = 0; lo < d && !stopping(); lo += detail::kSubsequenceTile)
                                detail::subsequence_mean(here.row, b, largest, smallest, lo,
                                                         std::min(d, lo + detail::kSubsequenceTile), to);
                            });
}

}  // namespace byzadmm
