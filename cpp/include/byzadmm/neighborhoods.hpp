// Neighborhood rules at every node of a graph, a task each: IOS (and gossip, which is IOS without exclusions),
// BRIDGE-T, W-MSR.
#pragma once

#include <algorithm>
#include <limits>

#include "byzadmm/clipping.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/median.hpp"

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
/// values of each column.
///
/// With H the b-th largest of the neighbors' values, those above it are dropped if it is larger than the own value, and as
/// many equal to it as make b; else all that are larger than the own one. The same below.
template <class T>
void subsequence_mean(const std::vector<const T*>& row, index_t b, T* BYZ_RESTRICT largest, T* BYZ_RESTRICT smallest,
                      index_t lo, index_t hi, T* out) {
  constexpr index_t size = kSubsequenceTile;
  constexpr T infinite = std::numeric_limits<T>::infinity();
  const index_t width = hi - lo;
  const T* own = row[0] + lo;
  std::fill(largest, largest + b * size, -infinite);
  std::fill(smallest, smallest + b * size, infinite);
  for (std::size_t r = 1; r < row.size(); ++r) {
    const T* value = row[r] + lo;
    T up[size], down[size];
    std::copy(value, value + width, up);
    std::copy(value, value + width, down);
    for (index_t s = 0; s < b; ++s) {  // from the end towards the middle; what does not fit is passed on
      T *top = largest + s * size, *low = smallest + s * size;
      for (index_t j = 0; j < width; ++j) {
        const T more = up[j] > top[j] ? up[j] : top[j], less = up[j] > top[j] ? top[j] : up[j];
        const T least = down[j] < low[j] ? down[j] : low[j], rest = down[j] < low[j] ? low[j] : down[j];
        top[j] = more;
        up[j] = less;
        low[j] = least;
        down[j] = rest;
      }
    }
  }
  // Kept are the values between two bounds, and some of those equal to one: counted in T, as whole numbers.
  T above[size], below[size], inside[size], at_above[size], at_below[size];
  const T* top = b ? largest + (b - 1) * size : nullptr;
  const T* low = b ? smallest + (b - 1) * size : nullptr;
  for (index_t j = 0; j < width; ++j) {
    above[j] = !b ? infinite : top[j] > own[j] ? top[j] : own[j];
    below[j] = !b ? -infinite : low[j] < own[j] ? low[j] : own[j];
    inside[j] = at_above[j] = at_below[j] = 0;
  }
  for (std::size_t r = 1; r < row.size(); ++r) {
    const T* value = row[r] + lo;
    for (index_t j = 0; j < width; ++j) {
      const T v = value[j];
      inside[j] += (v > below[j]) & (v < above[j]) ? T(1) : T(0);
      // Beyond a bound that is the own value all are dropped; the others are counted to know how many equal ones are.
      at_above[j] += (above[j] > own[j] ? v >= above[j] : v == above[j]) ? T(1) : T(0);
      at_below[j] += (below[j] < own[j] ? v <= below[j] : (v == below[j]) & (below[j] < above[j])) ? T(1) : T(0);
    }
  }
  double share[size], sum[size];
  T least[size], most[size];
  for (index_t j = 0; j < width; ++j) {
    const T dropped = static_cast<T>(b);
    at_above[j] -= above[j] > own[j] ? dropped : T(0);
    at_below[j] -= below[j] < own[j] ? dropped : T(0);
    if (!b) at_above[j] = at_below[j] = 0;
    share[j] = 1.0 / static_cast<double>(1 + inside[j] + at_above[j] + at_below[j]);
    sum[j] = static_cast<double>(own[j]) * share[j];
    if (at_above[j] > 0) sum[j] += static_cast<double>(above[j]) * (static_cast<double>(at_above[j]) * share[j]);
    if (at_below[j] > 0) sum[j] += static_cast<double>(below[j]) * (static_cast<double>(at_below[j]) * share[j]);
    most[j] = at_above[j] > 0 ? above[j] : own[j];
    least[j] = at_below[j] > 0 ? below[j] : own[j];
  }
  for (std::size_t r = 1; r < row.size(); ++r) {
    const T* value = row[r] + lo;
    for (index_t j = 0; j < width; ++j) {
      const bool kept = (value[j] > below[j]) & (value[j] < above[j]);
      const T v = kept ? value[j] : own[j];
      sum[j] += kept ? static_cast<double>(v) * share[j] : 0.0;
      least[j] = v < least[j] ? v : least[j];
      most[j] = v > most[j] ? v : most[j];
    }
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
/// without the f_i largest, of those smaller without the f_i smallest.  own, out: (m, d), distinct; f: (m), negative for
/// own_i.
template <class T>
BYZ_NOINLINE void subsequence_neighbors(const T* own, Heard<T> heard, const index_t* f, T* out, int threads) {
  const index_t d = heard.d;
  const std::vector<double> ones(static_cast<std::size_t>(std::max(heard.offset[heard.m], heard.m)), 1.0);
  detail::for_neighborhoods(own, heard, ones.data(), ones.data(), f, out, threads,
                            [=](detail::Neighborhood<T>& here, index_t declared, T* to) {
                              const index_t n = static_cast<index_t>(here.row.size()) - 1;
                              const index_t b = std::min(declared, n), room = b * detail::kSubsequenceTile;
                              here.ends.resize(static_cast<std::size_t>(2 * room));
                              T *largest = here.ends.data(), *smallest = largest + room;
                              for (index_t lo = 0; lo < d; lo += detail::kSubsequenceTile)
                                detail::subsequence_mean(here.row, b, largest, smallest, lo,
                                                         std::min(d, lo + detail::kSubsequenceTile), to);
                            });
}

}  // namespace byzadmm
