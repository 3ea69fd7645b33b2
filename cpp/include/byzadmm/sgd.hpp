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

}  // namespace byzadmm
