// RSA (eq:rsa-update), the subgradient method on the same TV-norm problem.
#pragma once

#include "byzadmm/admm.hpp"

namespace byzadmm {

namespace detail {

/// sgn with sgn(0) = 0 and sgn(NaN) = NaN.
template <class T>
BYZ_ALWAYS_INLINE T sign(T v) {
  const T s = v > T(0) ? T(1) : (v < T(0) ? T(-1) : T(0));
  return v == v ? s : v;
}

}  // namespace detail

/// Worker: out = x - alpha (g + lam sgn(x - x0)).  x, g, out: (m, d); x0: (d).  out may be x or g.
template <class T>
BYZ_NOINLINE void rsa_worker_step(const T* x, const T* g, const T* x0, T alpha, T lam, T* out, index_t m, index_t d,
                                  int threads) {
  const index_t tiles = (d + detail::kElementTile - 1) / detail::kElementTile;
  for_tasks(m * tiles, threads, [=](index_t task, int) {
    const index_t base = task / tiles * d, lo = task % tiles * detail::kElementTile;
    const index_t hi = lo + detail::kElementTile < d ? lo + detail::kElementTile : d;
    const T *w = x + base, *s = g + base;
    T* o = out + base;
#pragma GCC ivdep
    for (index_t j = lo; j < hi; ++j) o[j] = w[j] - alpha * (s[j] + lam * detail::sign(w[j] - x0[j]));
  });
}

/// Master: out = x0 - alpha (rho x0 - lam sum_i sgn(message_i - x0)).  x0, out: (d); messages: (m, d).  out may be x0.
template <class T>
BYZ_NOINLINE void rsa_master_step(const T* x0, Rows<T> messages, double alpha, double lam, double rho, T* out,
                                  int threads) {
  for_tiles(messages.d, detail::kMasterTile, threads, [=](index_t lo, index_t hi, int) {
    T acc[detail::kMasterTile];  // whole numbers up to m: exact
    const index_t width = hi - lo;
    for (index_t j = 0; j < width; ++j) acc[j] = 0;
    for (index_t i = 0; i < messages.n; ++i) {
      const T* BYZ_RESTRICT row = messages.row[i] + lo;
      for (index_t j = 0; j < width; ++j) acc[j] += detail::sign(row[j] - x0[lo + j]);
    }
    for (index_t j = 0; j < width; ++j) {
      const double x = static_cast<double>(x0[lo + j]);
      out[lo + j] = static_cast<T>(x - alpha * (rho * x - lam * static_cast<double>(acc[j])));
    }
  });
}

}  // namespace byzadmm
