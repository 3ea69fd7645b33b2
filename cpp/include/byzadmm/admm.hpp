// The simplified stochastic ADMM (Proposition lem:simp), one function per update equation.
//
// Every function may write in place (out = x, eta or x0): each element is read before it is written and no other
// element is looked at. Duals of all m workers lie in one (m, d) array.
#pragma once

#include "byzadmm/parallel.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

namespace detail {

/// Elements an elementwise kernel hands to a thread at a time.
constexpr index_t kElementTile = 8192;
/// Columns a sum over workers keeps in L1 at a time.
constexpr index_t kMasterTile = 2048;

/// acc_j = acc_j + term(0, j) + ... + term(m - 1, j) in this order, j < width. Four workers a pass: acc is loaded and
/// stored a quarter as often, and memory is still read in runs of a tile, which the hardware fetches ahead.
template <class Acc, class Term>
BYZ_ALWAYS_INLINE void add_workers(index_t m, index_t width, Acc* BYZ_RESTRICT acc, Term term) {
  index_t i = 0;
  for (; i + 4 <= m; i += 4)
    for (index_t j = 0; j < width; ++j) acc[j] = acc[j] + term(i, j) + term(i + 1, j) + term(i + 2, j) + term(i + 3, j);
  for (; i < m; ++i)
    for (index_t j = 0; j < width; ++j) acc[j] += term(i, j);
}

}  // namespace detail

/// eqxi-update: out = x - alpha (g + 2 eta - eta_prev), elementwise over `size` = m d numbers.
template <class T>
BYZ_NOINLINE void admm_worker_step(const T* x, const T* g, const T* eta, const T* eta_prev, T alpha, T* out,
                                   index_t size, int threads) {
  for_tiles(size, detail::kElementTile, threads, [=](index_t lo, index_t hi, int) {
#pragma GCC ivdep
    for (index_t j = lo; j < hi; ++j) out[j] = x[j] - alpha * (g[j] + (eta[j] + eta[j] - eta_prev[j]));
  });
}

/// eq11, eq11c: out = proj_[-lam, lam](eta + beta/2 (x - x0)).  eta, x, out: (m, d); x0: (d).  NaN stays NaN, so that
/// the master can see it.
template <class T>
BYZ_NOINLINE void admm_dual_step(const T* eta, const T* x, const T* x0, T beta, T lam, T* out, index_t m, index_t d,
                                 int threads) {
  const T half = beta / T(2);
  const index_t tiles = (d + detail::kElementTile - 1) / detail::kElementTile;
  for_tasks(m * tiles, threads, [=](index_t task, int) {
    const index_t base = task / tiles * d, lo = task % tiles * detail::kElementTile;
    const index_t hi = lo + detail::kElementTile < d ? lo + detail::kElementTile : d;
    const T *e = eta + base, *w = x + base;
    T* o = out + base;
#pragma GCC ivdep
    for (index_t j = lo; j < hi; ++j) {
      T v = e[j] + half * (w[j] - x0[j]);
      v = v > lam ? lam : v;
      o[j] = v < -lam ? -lam : v;
    }
  });
}

/// Both of one worker in one pass over memory, in place: x becomes x - alpha (g + 2 eta - eta_prev), and eta_prev the
/// next dual. The same operations in the same order, so the same bits. Returns whether that dual is what a master
/// accepts: within [-lam, lam], not NaN.
template <class T>
BYZ_NOINLINE bool admm_worker_and_dual_step(T* x, const T* g, const T* eta, T* eta_prev, const T* x0, T alpha, T beta,
                                            T lam, index_t d) {
  const T half = beta / T(2);
  int odd = 0;
#pragma GCC ivdep
  for (index_t j = 0; j < d; ++j) {
    const T moved = x[j] - alpha * (g[j] + (eta[j] + eta[j] - eta_prev[j]));
    T v = eta[j] + half * (moved - x0[j]);
    v = v > lam ? lam : v;
    v = v < -lam ? -lam : v;
    odd |= !(v <= lam && v >= -lam);
    x[j] = moved;
    eta_prev[j] = v;
  }
  return odd == 0;
}

/// A worker's side of a round in one pass over memory, in place: x becomes x - alpha (g + 2 eta - eta_prev), eta_prev
/// becomes eta, and eta the next dual, as g does: the message. The same operations as in the two functions above, so
/// the same bits.  x, g, eta, eta_prev: (m, d), distinct; x0: (d).
template <class T>
BYZ_NOINLINE void admm_answer(T* x, T* g, T* eta, T* eta_prev, const T* x0, T alpha, T beta, T lam, index_t m,
                              index_t d, int threads) {
  const T half = beta / T(2);
  const index_t tiles = (d + detail::kElementTile - 1) / detail::kElementTile;
  for_tasks(m * tiles, threads, [=](index_t task, int) {
    const index_t base = task / tiles * d, lo = task % tiles * detail::kElementTile;
    const index_t hi = lo + detail::kElementTile < d ? lo + detail::kElementTile : d;
    T *w = x + base, *s = g + base, *e = eta + base, *p = eta_prev + base;
#pragma GCC ivdep
    for (index_t j = lo; j < hi; ++j) {
      const T dual = e[j], moved = w[j] - alpha * (s[j] + (dual + dual - p[j]));
      T v = dual + half * (moved - x0[j]);
      v = v > lam ? lam : v;
      v = v < -lam ? -lam : v;
      w[j] = moved;
      p[j] = dual;
      e[j] = v;
      s[j] = v;
    }
  });
}

/// eqx0-update-1 with f0 = rho/2 ||x||^2: out = x0 - alpha (rho x0 - sum_i (2 eta_i - eta_prev_i)).
/// x0, out: (d); eta, eta_prev: (m, d).  The sum runs over the workers in order, in double.
template <class T>
BYZ_NOINLINE void admm_master_step(const T* x0, Rows<T> eta, Rows<T> eta_prev, double alpha, double rho, T* out,
                                   int threads) {
  for_tiles(eta.d, detail::kMasterTile, threads, [=](index_t lo, index_t hi, int) {
    double acc[detail::kMasterTile];
    const index_t width = hi - lo;
    for (index_t j = 0; j < width; ++j) acc[j] = 0;
    const T *const *e = eta.row, *const *p = eta_prev.row;
    detail::add_workers(eta.n, width, acc, [=](index_t i, index_t j) BYZ_LAMBDA_INLINE {
      return static_cast<double>(e[i][lo + j] + e[i][lo + j] - p[i][lo + j]);
    });
    for (index_t j = 0; j < width; ++j) {
      const double x = static_cast<double>(x0[lo + j]);
      out[lo + j] = static_cast<T>(x - alpha * (rho * x - acc[j]));
    }
  });
}

/// A master that moves after every few duals hears one: eta_prev <- eta <- message, all (d), and the sums over the
/// workers follow: total = sum_i eta_i and change = sum_i (eta_i - eta_prev_i), in double.
template <class T>
BYZ_NOINLINE void admm_hear(const T* message, T* eta, T* eta_prev, double* total, double* change, index_t d) {
#pragma GCC ivdep
  for (index_t j = 0; j < d; ++j) {
    const T before = eta[j], now = message[j];
    const double step = static_cast<double>(now) - static_cast<double>(before);
    eta_prev[j] = before;
    eta[j] = now;
    total[j] += step;
    change[j] += step;
  }
}

/// eqx0-update-1 from these sums, in place: x0 <- x0 - alpha (rho x0 - total - change); then change <- 0, as every dual
/// that is not heard until the next update counts as now and as before.
template <class T>
BYZ_NOINLINE void admm_master_step_of_sums(T* x0, const double* total, double* change, double alpha, double rho,
                                           index_t d) {
#pragma GCC ivdep
  for (index_t j = 0; j < d; ++j) {
    const double x = static_cast<double>(x0[j]);
    x0[j] = static_cast<T>(x - alpha * (rho * x - (total[j] + change[j])));
    change[j] = 0;
  }
}

}  // namespace byzadmm
