// Views over memory that somebody else owns.
#pragma once

#include "byzadmm/config.hpp"

namespace byzadmm {

/// n vectors of length d, reached through one pointer each: rows of a matrix, a subset of them, or separate arrays.
template <class T>
struct Rows {
  const T* const* row;  // (n)
  index_t n;
  index_t d;
};

/// n samples of length d, row-major. X is the storage type (uint8_t, float, double).
template <class X>
struct Samples {
  const X* data;  // (n, d)
  index_t n;
  index_t d;
};

}  // namespace byzadmm
