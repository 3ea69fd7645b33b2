// Steps of all nodes of a graph: their models, the duals of their links, the signs of differences to their neighbors.
//
// Links lead from a neighbor to a node and are sorted by node, so that one node's duals lie together. A sum over the
// links of a node runs in their order, in double; that of four floats is a float.
#pragma once

#include "byzadmm/rsa.hpp"

namespace byzadmm {

namespace detail {

/// body(node, lo, hi) for tiles of columns of every node; nodes share messages, so that a tile of all comes first.
template <class Body>
inline void for_nodes(index_t m, index_t d, int threads, Body&& body) {
  const index_t tiles = (d + kMasterTile - 1) / kMasterTile;
  for_tasks(m * tiles, threads, [&](index_t task, int) {
    const index_t lo = task / m * kMasterTile;
    body(task % m, lo, lo + kMasterTile < d ? lo + kMasterTile : d);
  });
}

constexpr index_t kAhead = 256;  // columns of duals that are asked for at a time
template <class T>
constexpr index_t kLine = 64 / sizeof(T);  // numbers in a line of the cache

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
  const auto plain = [=](index_t l) { return heard.index[l] >= 0 && !(dictated && dictated[l]); };
  detail::for_nodes(heard.m, d, threads, [=](index_t node, index_t lo, index_t hi) {
    double acc[detail::kMasterTile];
    const index_t width = hi - lo, last = heard.offset[node + 1];
    for (index_t j = 0; j < width; ++j) acc[j] = 0;
    const T* BYZ_RESTRICT w = x + node * d + lo;
    for (index_t l = heard.offset[node]; l < last; ++l) {
      T* dual = e + l * d + lo;
      const T* u = heard.index[l] < 0 ? nullptr : heard.table[heard.index[l]] + lo;
      if (!u) {
        for (index_t j = 0; j < width; ++j) acc[j] += static_cast<double>(dual[j]);
      } else if (!plain(l)) {
        for (index_t j = 0; j < width; ++j) {
          const T before = dual[j], now = detail::clipped(-u[j], lam);
          acc[j] += static_cast<double>(now + now - before);
          dual[j] = now;
        }
      } else if (l + 4 <= last && plain(l + 1) && plain(l + 2) && plain(l + 3)) {
        // Four links a pass: acc is loaded and stored a quarter as often.
        T *e1 = dual + d, *e2 = e1 + d, *e3 = e2 + d;
        const T *u1 = heard.table[heard.index[l + 1]] + lo, *u2 = heard.table[heard.index[l + 2]] + lo;
        const T* u3 = heard.table[heard.index[l + 3]] + lo;
        for (index_t first = 0; first < width; first += detail::kAhead) {
          const index_t end = first + detail::kAhead < width ? first + detail::kAhead : width;
          // The duals are the one thing that comes from far: those of the next four links are asked for by then.
          for (index_t r = 4; r < 8; ++r)
            for (index_t j = first; j < end; j += detail::kLine<T>) __builtin_prefetch(dual + r * d + j, 1);
#pragma GCC ivdep
          for (index_t j = first; j < end; ++j) {
            const T b0 = dual[j], b1 = e1[j], b2 = e2[j], b3 = e3[j], at = w[j];
            const T n0 = detail::clipped(b0 + half * (at - u[j]), lam),
                    n1 = detail::clipped(b1 + half * (at - u1[j]), lam);
            const T n2 = detail::clipped(b2 + half * (at - u2[j]), lam),
                    n3 = detail::clipped(b3 + half * (at - u3[j]), lam);
            dual[j] = n0;
            e1[j] = n1;
            e2[j] = n2;
            e3[j] = n3;
            const T p0 = n0 + n0 - b0, p1 = n1 + n1 - b1, p2 = n2 + n2 - b2, p3 = n3 + n3 - b3;
            if constexpr (sizeof(T) == sizeof(double)) acc[j] = acc[j] + p0 + p1 + p2 + p3;
            else acc[j] += static_cast<double>((p0 + p1) + (p2 + p3));  // converting each would take half of the time
          }
        }
        l += 3;
      } else {
#pragma GCC ivdep
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
    T acc[detail::kMasterTile];  // whole numbers: exact in any order
    const index_t width = hi - lo;
    for (index_t j = 0; j < width; ++j) acc[j] = 0;
    const T* w = x + node * d + lo;
    const T* row[4];
    index_t count = 0;
    const auto add = [&] {
      simd::for_vectors<T>(0, width, [=, &acc](index_t j, auto load, auto store) BYZ_LAMBDA_INLINE {
        const simd::vec<T> at = load(w + j);
        simd::vec<T> sum = load(acc + j);
        if (count == 4)
          for (index_t r = 0; r < 4; ++r) sum += detail::sign<T>(at - load(row[r] + j));
        else
          for (index_t r = 0; r < count; ++r) sum += detail::sign<T>(at - load(row[r] + j));
        store(acc + j, sum);
      });
      count = 0;
    };
    for (index_t l = heard.offset[node]; l < heard.offset[node + 1]; ++l) {
      if (heard.index[l] < 0) continue;
      row[count++] = heard.table[heard.index[l]] + lo;
      if (count == 4) add();
    }
    if (count) add();
    for (index_t j = 0; j < width; ++j) pull[node * d + lo + j] = lam * static_cast<double>(acc[j]);
  });
}

}  // namespace byzadmm
