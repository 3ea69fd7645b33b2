// The master's step of SGD, with whatever rule made one direction out of the workers' gradients.
#pragma once

#include "byzadmm/admm.hpp"

namespace byzadmm {

/// out = x0 - alpha (direction + rho x0).  x0, direction, out: (d).  out may be x0.
template <class T>
BYZ_NOINLINE void sgd_step(const T* x0, const T* direction, T alpha, T rho, T* out, index_t d, int threads) {
  for_tiles(d, detail::kElementTile, threads, [=](index_t lo, index_t hi, int) {
#pragma GCC ivdep
    for (index_t j = lo; j < hi; ++j) out[j] = x0[j] - alpha * (direction[j] + rho * x0[j]);
  });
}

/// Worker momentum (Karimireddy et al., ICML 2021): m <- beta m + (1 - beta) g, in place over `size` numbers.
template <class T>
BYZ_NOINLINE void momentum_step(T* m, const T* g, T beta, index_t size, int threads) {
  const T rest = T(1) - beta;
  for_tiles(size, detail::kElementTile, threads, [=](index_t lo, index_t hi, int) {
#pragma GCC ivdep
    for (index_t j = lo; j < hi; ++j) m[j] = beta * m[j] + rest * g[j];
  });
}

}  // namespace byzadmm
