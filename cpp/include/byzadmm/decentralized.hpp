// Steps of all nodes of a graph: their models, the duals of their links, the signs of differences to their neighbors.
//
// Links lead from a neighbor to a node and are sorted by node, so that one node's duals lie together. A sum over the
// links of a node runs in their order, in double.
#pragma once

#include "byzadmm/admm.hpp"

namespace byzadmm {

namespace detail {

/// body(node, lo, hi) for tiles of columns of every node.
template <class Body>
inline void for_nodes(index_t m, index_t d, int threads, Body&& body) {
  const index_t tiles = (d + kMasterTile - 1) / kMasterTile;
  for_tasks(m * tiles, threads, [&](index_t task, int) {
    const index_t lo = task % tiles * kMasterTile;
    body(task / tiles, lo, lo + kMasterTile < d ? lo + kMasterTile : d);
  });
}

template <class T>
BYZ_ALWAYS_INLINE T clipped(T v, T lam) {
  v = v > lam ? lam : v;
  return v < -lam ? -lam : v;
}

}  // namespace detail

/// out_i = base_i - alpha_i (g_i + rho_i x_i + pull_i), in double.  base, x, g, pull, out: (m, d); alpha, rho: (m).
/// pull may be null; out may be base, x or g.
template <class T>
BYZ_NOINLINE void node_steps(const T* base, const T* x, const T* g, const double* pull, const double* alpha,
                             const double* rho, T* out, index_t m, index_t d, int threads) {
  detail::for_nodes(m, d, threads, [=](index_t node, index_t lo, index_t hi) {
    const index_t at = node * d;
    const double a = alpha[node], r = rho[node];
#pragma GCC ivdep
    for (index_t j = at + lo; j < at + hi; ++j) {
      const double own = r * static_cast<double>(x[j]);
      const double slope = static_cast<double>(g[j]) + (pull ? own + pull[j] : own);
      out[j] = static_cast<T>(static_cast<double>(base[j]) - a * slope);
    }
  });
}

/// Link l of node i that heard u: e_l <- clip(e_l + beta/2 (x_i - u), lam), or clip(-u, lam) if u is a dual that the
/// sender dictates; one that heard nothing keeps its e_l. In the same pass pull_i = sum_l (2 e_l - e_l before).
/// x: (m, d); e: (L, d); dictated: (L) or null; pull: (m, d).
template <class T>
BYZ_NOINLINE void edge_dual_steps(const T* x, Heard<T> heard, const bool* dictated, T beta, T lam, T* e, double* pull,
                                  int threads) {
  const T half = beta / T(2);
  const index_t d = heard.d;
  detail::for_nodes(heard.m, d, threads, [=](index_t node, index_t lo, index_t hi) {
    double acc[detail::kMasterTile];
    const index_t width = hi - lo;
    for (index_t j = 0; j < width; ++j) acc[j] = 0;
    const T* w = x + node * d + lo;
    for (index_t l = heard.offset[node]; l < heard.offset[node + 1]; ++l) {
      T* BYZ_RESTRICT dual = e + l * d + lo;
      const T* u = heard.index[l] < 0 ? nullptr : heard.table[heard.index[l]] + lo;
      if (!u) {
        for (index_t j = 0; j < width; ++j) acc[j] += static_cast<double>(dual[j]);
      } else if (dictated && dictated[l]) {
        for (index_t j = 0; j < width; ++j) {
          const T before = dual[j], now = detail::clipped(-u[j], lam);
          acc[j] += static_cast<double>(now + now - before);
          dual[j] = now;
        }
      } else {
        for (index_t j = 0; j < width; ++j) {
          const T before = dual[j], now = detail::clipped(before + half * (w[j] - u[j]), lam);
          acc[j] += static_cast<double>(now + now - before);
          dual[j] = now;
        }
      }
    }
    for (index_t j = 0; j < width; ++j) pull[node * d + lo + j] = acc[j];
  });
}

/// pull_i = lam sum_l sgn(x_i - u_l) over the links on which node i heard u_l, sgn(0) = 0.  x, pull: (m, d).
template <class T>
BYZ_NOINLINE void sign_pulls(const T* x, Heard<T> heard, double lam, double* pull, int threads) {
  const index_t d = heard.d;
  detail::for_nodes(heard.m, d, threads, [=](index_t node, index_t lo, index_t hi) {
    T acc[detail::kMasterTile];  // whole numbers
    const index_t width = hi - lo;
    for (index_t j = 0; j < width; ++j) acc[j] = 0;
    const T* w = x + node * d + lo;
    for (index_t l = heard.offset[node]; l < heard.offset[node + 1]; ++l) {
      if (heard.index[l] < 0) continue;
      const T* u = heard.table[heard.index[l]] + lo;
      for (index_t j = 0; j < width; ++j) acc[j] += (w[j] > u[j] ? T(1) : T(0)) - (w[j] < u[j] ? T(1) : T(0));
    }
    for (index_t j = 0; j < width; ++j) pull[node * d + lo + j] = lam * static_cast<double>(acc[j]);
  });
}

}  // namespace byzadmm
