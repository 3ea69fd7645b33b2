// Neighborhood rules at every node of a graph, a task each: IOS (and gossip, which is IOS without exclusions),
// BRIDGE-T.
#pragma once

#include <algorithm>

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
  std::vector<T> center;

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

}  // namespace byzadmm
