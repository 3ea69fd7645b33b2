// Sorting and selection networks: min/max on vectors of columns, without a branch.
//
// For few rows the network is a constant and unrolled into registers; for more it is a table that a loop runs over.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "byzadmm/simd.hpp"

namespace byzadmm {

/// Largest n whose median network is unrolled: compile time grows faster than the gain beyond.
#ifndef BYZADMM_MAX_UNROLLED
#define BYZADMM_MAX_UNROLLED 20
#endif
constexpr int kMaxUnrolled = BYZADMM_MAX_UNROLLED;
/// Largest n for a network at all; above, counting (selection.hpp) measured faster.
constexpr int kMaxNetwork = 64;

struct Exchange {
  std::int32_t a, b;
};

/// emit(Exchange) for every step of Batcher's merge exchange on n inputs (Knuth, TAOCP vol. 3, algorithm 5.2.2M).
template <class Emit>
constexpr void batcher(int n, Emit&& emit) {
  int top = 1;
  while (top * 2 < n) top *= 2;
  for (int p = n > 1 ? top : 0; p > 0; p /= 2) {
    int q = top, r = 0, d = p;
    while (true) {
      for (int i = 0; i + d < n; ++i)
        if ((i & p) == r) emit(Exchange{i, i + d});
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
}

/// What is asked of a network: values of some ranks in order, or which values have them.
enum class Wanted { sorted, set };

/// The exchanges that ranks [first, last] depend on, in order: the rest of a sorting network does not matter to them.
/// full[0..size) is overwritten; group: (n) scratch.  Returns how many are left.
constexpr int prune(Exchange* full, int size, int* group, int n, int first, int last, Wanted wanted) {
  constexpr int kRead = -1;  // by an exchange that comes later
  for (int i = 0; i < n; ++i) group[i] = i < first || i > last ? 0 : wanted == Wanted::set ? 1 : i + 1;
  int kept = size;
  for (int s = size - 1; s >= 0; --s) {
    const Exchange e = full[s];
    if (group[e.a] == group[e.b] && group[e.a] != kRead) continue;
    group[e.a] = group[e.b] = kRead;
    full[--kept] = e;
  }
  for (int s = kept; s < size; ++s) full[s - kept] = full[s];
  return size - kept;
}

template <int N>
struct Network {
  std::array<Exchange, N * 8> exchange{};
  int size = 0;
};

template <int N>
constexpr Network<N> selection_network(int first, int last, Wanted wanted) {
  Network<N> net;
  batcher(N, [&net](Exchange e) { net.exchange[net.size++] = e; });
  int group[N] = {};
  net.size = prune(net.exchange.data(), net.size, group, N, first, last, wanted);
  return net;
}

/// The same as a table, for a loop.
inline std::vector<Exchange> selection_table(int n, int first, int last, Wanted wanted) {
  std::vector<Exchange> table;
  batcher(n, [&table](Exchange e) { table.push_back(e); });
  std::vector<int> group(static_cast<std::size_t>(n));
  const int size = prune(table.data(), static_cast<int>(table.size()), group.data(), n, first, last, wanted);
  table.resize(static_cast<std::size_t>(size));
  return table;
}

template <class V>
BYZ_ALWAYS_INLINE void exchange(V& a, V& b) {
  const V low = simd::min(a, b);
  b = simd::max(a, b);
  a = low;
}

template <int N>
struct MedianNetwork {
  static constexpr Network<N> net = selection_network<N>((N - 1) / 2, N / 2, Wanted::sorted);
};

template <int N>
struct SortNetwork {
  static constexpr Network<N> net = selection_network<N>(0, N - 1, Wanted::sorted);
};

/// The middle N - 2F values, in any order, between the F smallest and the F largest.
template <int N, int F>
struct TrimNetwork {
  static constexpr Network<N> net = selection_network<N>(F, N - 1 - F, Wanted::set);
};

template <class Net, class V, std::size_t... S>
BYZ_ALWAYS_INLINE void run_network([[maybe_unused]] V* v, std::index_sequence<S...>) {
  (exchange(v[Net::net.exchange[S].a], v[Net::net.exchange[S].b]), ...);
}

/// Sort (or select in) v[0..N) lane by lane; the indices are constants, so v lives in registers.
template <class Net, class V>
BYZ_ALWAYS_INLINE void run_network(V* v) {
  run_network<Net>(v, std::make_index_sequence<Net::net.size>{});
}

/// The same with the exchanges read from a table.
template <class V>
BYZ_ALWAYS_INLINE void run_table(const std::vector<Exchange>& table, V* v) {
  for (const Exchange e : table) exchange(v[e.a], v[e.b]);
}

}  // namespace byzadmm
