// Names every other header leans on: the index type, restrict and inline macros.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__GNUC__) && !defined(__clang__)
#error "byzadmm's kernels use GCC vector extensions: build with GCC or Clang (on Windows: clang-cl)"
#endif

#define BYZ_RESTRICT __restrict__
#define BYZ_ALWAYS_INLINE inline __attribute__((always_inline))
#define BYZ_LAMBDA_INLINE __attribute__((always_inline))
// Entry points stay out of line, so that every caller (a binding, the fused loop, a C++ project) runs the same code.
#define BYZ_NOINLINE __attribute__((noinline))

namespace byzadmm {

using index_t = std::ptrdiff_t;

}  // namespace byzadmm
