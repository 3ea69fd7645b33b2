// The simplified stochastic ADMM (Proposition lem:simp), one function per update equation.
//
// Every function may write in place (out = x, eta or x0): each element is read before it is written and no other
// element is looked at. Duals of all m workers lie in one (m, d) array.
#pragma once

#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"
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

/// A dual in a loop: eta, and beside it what both updates read, ahead = 2 eta - eta_prev, so that one stream of memory
/// serves where two would. eta_prev itself stands there before the first iteration and after the last one.
template <class T>
struct DualInLoop {
  T *eta, *beside;
  bool first, last;
};

namespace detail {

/// eta <- next(j, eta, ahead, load, store) for vectors of columns j, in place. Returns whether the new dual is what a
/// master accepts: within [-lam, lam], not NaN.
template <class T, class Next>
BYZ_ALWAYS_INLINE bool advance_dual(const DualInLoop<T>& dual, T lam, index_t d, Next next) {
  using V = simd::vec<T>;
  T *eta = dual.eta, *beside = dual.beside;
  const bool first = dual.first, last = dual.last;
  simd::vec<simd::int_of<T>> odd{};
  simd::for_vectors<T>(0, d, [&](index_t j, auto load, auto store) BYZ_LAMBDA_INLINE {
    const V before = load(eta + j), kept = load(beside + j);
    const V now = next(j, before, first ? before + before - kept : kept, load, store);
    store(eta + j, now);
    const V sent = load(eta + j);  // zeros past the last column
    odd |= ~((sent <= lam) & (sent >= -lam));
    store(beside + j, last ? before : now + now - before);
  });
  return !simd::any(odd);
}

/// proj_[-lam, lam](eta + half (x - x0)); min and max return their second argument if it is NaN.
template <class V, class T>
BYZ_ALWAYS_INLINE V dual_of(V eta, V x, V x0, T half, T lam) {
  return simd::max(V{} - lam, simd::min(V{} + lam, eta + half * (x - x0)));
}

}  // namespace detail

/// eqxi-update and eq11 of one worker in one pass over memory, in place. The same operations in the same order as above
/// and below, so the same bits. Returns whether a master accepts the new dual.
template <class T>
BYZ_NOINLINE bool admm_worker_and_dual_step(T* x, const T* g, const DualInLoop<T>& dual, const T* x0, T alpha, T beta,
                                            T lam, index_t d) {
  const T half = beta / T(2);
  return detail::advance_dual(dual, lam, d,
                              [=](index_t j, auto eta, auto ahead, auto load, auto store) BYZ_LAMBDA_INLINE {
                                const auto moved = load(x + j) - alpha * (load(g + j) + ahead);
                                store(x + j, moved);
                                return detail::dual_of(eta, moved, load(x0 + j), half, lam);
                              });
}

/// eq11c from a model that was forged.
template <class T>
BYZ_NOINLINE bool admm_forged_dual_step(const T* u, const DualInLoop<T>& dual, const T* x0, T beta, T lam, index_t d) {
  const T half = beta / T(2);
  return detail::advance_dual(dual, lam, d, [=](index_t j, auto eta, auto, auto load, auto) BYZ_LAMBDA_INLINE {
    return detail::dual_of(eta, load(u + j), load(x0 + j), half, lam);
  });
}

/// A dual that was forged itself.
template <class T>
BYZ_NOINLINE bool admm_forged_dual(const T* u, const DualInLoop<T>& dual, T lam, index_t d) {
  return detail::advance_dual(dual, lam, d,
                              [=](index_t j, auto, auto, auto load, auto) BYZ_LAMBDA_INLINE { return load(u + j); });
}

namespace detail {

/// out = x0 - alpha (rho x0 - sum_i term(i, j)), the sum over the workers in order, in double.
template <class T, class Term>
BYZ_ALWAYS_INLINE void admm_master(const T* x0, index_t n, index_t d, double alpha, double rho, T* out, int threads,
                                   Term term) {
  for_tiles(d, kMasterTile, threads, [=](index_t lo, index_t hi, int) {
    double acc[kMasterTile];
    const index_t width = hi - lo;
    for (index_t j = 0; j < width; ++j) acc[j] = 0;
    add_workers(n, width, acc,
                [=](index_t i, index_t j) BYZ_LAMBDA_INLINE { return static_cast<double>(term(i, lo + j)); });
    for (index_t j = 0; j < width; ++j) {
      const double x = static_cast<double>(x0[lo + j]);
      out[lo + j] = static_cast<T>(x - alpha * (rho * x - acc[j]));
    }
  });
}

}  // namespace detail

/// eqx0-update-1 with f0 = rho/2 ||x||^2: out = x0 - alpha (rho x0 - sum_i (2 eta_i - eta_prev_i)).
/// x0, out: (d); eta, eta_prev: (m, d).
template <class T>
BYZ_NOINLINE void admm_master_step(const T* x0, Rows<T> eta, Rows<T> eta_prev, double alpha, double rho, T* out,
                                   int threads) {
  const T *const *e = eta.row, *const *p = eta_prev.row;
  detail::admm_master(x0, eta.n, eta.d, alpha, rho, out, threads,
                      [=](index_t i, index_t j) BYZ_LAMBDA_INLINE { return e[i][j] + e[i][j] - p[i][j]; });
}

/// The same from ahead_i = 2 eta_i - eta_prev_i, (m, d).
template <class T>
BYZ_NOINLINE void admm_master_step_of_ahead(const T* x0, Rows<T> ahead, double alpha, double rho, T* out, int threads) {
  const T* const* a = ahead.row;
  detail::admm_master(x0, ahead.n, ahead.d, alpha, rho, out, threads,
                      [=](index_t i, index_t j) BYZ_LAMBDA_INLINE { return a[i][j]; });
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
