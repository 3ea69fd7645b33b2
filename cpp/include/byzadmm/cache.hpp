// What kernels know of caches: where a line begins, and how to ask for the columns that come next.
#pragma once

#include <cstdint>

#include "byzadmm/views.hpp"

namespace byzadmm::detail {

constexpr index_t kCacheLine = 64;

/// The first element at or after p that begins a cache line: vectors at multiples of a vector from it never straddle
/// two.
template <class T>
inline T* line_start(T* p) {
  const auto past = reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(kCacheLine);
  return past == 0 ? p : p + (kCacheLine - static_cast<index_t>(past)) / static_cast<index_t>(sizeof(T));
}

/// Asks for the columns [lo, hi) of all rows, a few cache lines at a time, in the order of the rows: memory answers
/// while something else is computed. Tiles of rows that lie far apart are too short for the hardware to foresee.
template <class T>
class Ahead {
 public:
  Ahead(Rows<T> x, index_t lo, index_t hi) : x_(x), lo_(lo), hi_(hi), at_(lo), row_(lo < hi ? 0 : x.n) {}

  /// In cache lines, of all rows.
  index_t size() const { return x_.n * ((hi_ - lo_ + kLine - 1) / kLine); }

  void ask(index_t lines) {
    for (; lines > 0 && row_ < x_.n; --lines) {
      __builtin_prefetch(x_.row[row_] + at_, 0, 2);
      at_ += kLine;
      if (at_ < hi_) continue;
      at_ = lo_;
      ++row_;
    }
  }

 private:
  static constexpr index_t kLine = kCacheLine / static_cast<index_t>(sizeof(T));
  Rows<T> x_;
  index_t lo_, hi_, at_, row_;
};

}  // namespace byzadmm::detail
