// Column-wise majority of signs.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "byzadmm/parallel.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

/// out_j = the sign of sum_i sgn(x_ij): -1, 0 or 1.  x: (n, d); out: (d), distinct from x.  Returns whether some x_ij
/// is not finite; a NaN has no sign.
template <class T>
BYZ_NOINLINE bool sign_majority(Rows<T> x, T* out, int threads) {
  using Count = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;  // as wide as T, for the vectors
  constexpr index_t kTile = 512;
  const index_t tiles = (x.d + kTile - 1) / kTile;
  const std::unique_ptr<bool[]> said(new bool[static_cast<std::size_t>(tiles)]());
  for_tiles(x.d, kTile, threads, [&](index_t lo, index_t hi, int) {
    Count votes[kTile] = {}, odd = 0;
    for (index_t i = 0; i < x.n; ++i) {
      const T* row = x.row[i] + lo;
      for (index_t j = 0; j < hi - lo; ++j) {
        votes[j] += static_cast<Count>(row[j] > T(0)) - static_cast<Count>(row[j] < T(0));
        odd |= static_cast<Count>(!(row[j] - row[j] == T(0)));
      }
    }
    for (index_t j = lo; j < hi; ++j) out[j] = static_cast<T>((votes[j - lo] > 0) - (votes[j - lo] < 0));
    said[static_cast<std::size_t>(lo / kTile)] = odd != 0;
  });
  bool any = false;
  for (index_t t = 0; t < tiles; ++t) any |= said[static_cast<std::size_t>(t)];
  return any;
}

}  // namespace byzadmm
