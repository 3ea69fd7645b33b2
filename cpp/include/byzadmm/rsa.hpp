// RSA (eq:rsa-update), the subgradient method on the same TV-norm problem.
#pragma once

#include <limits>

#include "byzadmm/admm.hpp"
#include "byzadmm/simd.hpp"

namespace byzadmm {

namespace detail {

/// sgn lane by lane, with sgn(0) = 0 and sgn(NaN) = NaN. Times two huge numbers the smallest subnormal is beyond 1, so
/// that clipping to [-1, 1] does it, without a branch; min and max return their second argument if it is NaN.
template <class T>
BYZ_ALWAYS_INLINE simd::vec<T> sign(simd::vec<T> v) {
  constexpr T huge = std::numeric_limits<T>::max();
  return simd::max(simd::splat(T(-1)), simd::min(simd::splat(T(1)), v * huge * huge));
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
    simd::for_vectors<T>(lo, hi, [=](index_t j, auto load, auto store) BYZ_LAMBDA_INLINE {
      const simd::vec<T> v = load(w + j);
      store(o + j, v - alpha * (load(s + j) + lam * detail::sign<T>(v - load(x0 + j))));
    });
  });
}

/// Master: out = x0 - alpha (rho x0 - lam sum_i sgn(message_i - x0)).  x0, out: (d); messages: (m, d).  out may be x0.
template <class T>
BYZ_NOINLINE void rsa_master_step(const T* x0, Rows<T> messages, double alpha, double lam, double rho, T* out,
                                  int threads) {
  for_tiles(messages.d, detail::kMasterTile, threads, [=](index_t lo, index_t hi, int) {
    T acc[detail::kMasterTile];  // whole numbers up to m: exact in any order
    const index_t width = hi - lo;
    for (index_t j = 0; j < width; ++j) acc[j] = 0;
    for (index_t i = 0; i < messages.n; i += 4) {  // four workers a pass, as in add_workers
      const index_t count = messages.n - i < 4 ? messages.n - i : 4;
      const T *const *row = messages.row + i, *z = x0 + lo;
      simd::for_vectors<T>(0, width, [=, &acc](index_t j, auto load, auto store) BYZ_LAMBDA_INLINE {
        const simd::vec<T> at = load(z + j);
        simd::vec<T> sum = load(acc + j);
        if (count == 4)
          for (index_t r = 0; r < 4; ++r) sum += detail::sign<T>(load(row[r] + lo + j) - at);
        else
          for (index_t r = 0; r < count; ++r) sum += detail::sign<T>(load(row[r] + lo + j) - at);
        store(acc + j, sum);
      });
    }
    for (index_t j = 0; j < width; ++j) {
      const double x = static_cast<double>(x0[lo + j]);
      out[lo + j] = static_cast<T>(x - alpha * (rho * x - lam * static_cast<double>(acc[j])));
    }
  });
}

}  // namespace byzadmm
