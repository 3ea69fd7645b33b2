// Samples of any storage type read as rows of T, a tile of them at a time.
#pragma once

#include "byzadmm/cache.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

constexpr index_t kBatchTile = 32;

namespace detail {

constexpr int kBlockSamples = 4;  // that a kernel takes at a time

template <class T>
constexpr index_t padded(index_t size) {
  return (size + simd::lanes<T> - 1) / simd::lanes<T> * simd::lanes<T>;
}

template <class T, class X>
BYZ_NOINLINE void convert_row(const void* row, index_t d, T* to) {
  const X* from = static_cast<const X*>(row);
  for (index_t j = 0; j < d; ++j) to[j] = static_cast<T>(from[j]);
}

/// Up to kBatchTile samples as rows of T: pointers into the data when it has that type, a converted copy otherwise.
template <class T>
class BatchTile {
 public:
  BatchTile(const SamplesAs<T>& samples, T* copy) : samples_(samples), copy_(copy) {}

  /// Samples idx[0..count) (or first, first + 1, ... without idx), and the last one again up to a whole block.
  const T* const* gather(const std::int64_t* idx, index_t first, index_t count) {
    for (index_t s = 0; s < count; ++s) {
      const void* from = samples_.row(idx ? static_cast<index_t>(idx[s]) : first + s);
      if (samples_.convert) {
        T* to = copy_ + s * padded<T>(samples_.d);
        samples_.convert(from, samples_.d, to);
        row_[s] = to;
      } else {
        row_[s] = static_cast<const T*>(from);
      }
    }
    for (index_t s = count; s % kBlockSamples != 0; ++s) row_[s] = row_[count - 1];
    return row_;
  }

 private:
  SamplesAs<T> samples_;
  T* copy_;
  const T* row_[kBatchTile] = {};
};

/// Ask for a row that is read soon.
inline void prefetch_row(const void* row, index_t bytes) {
  const char* from = static_cast<const char*>(row);
  const char* end = from + bytes;
  for (; from < end; from += kCacheLine) __builtin_prefetch(from);
  __builtin_prefetch(end - 1);
}

/// The rows idx[0..count) that are gathered next, asked for a few at a time while something else is computed: all at
/// once would wait for each other. No idx, no rows.
template <class T>
class RowsAhead {
 public:
  RowsAhead(const SamplesAs<T>& samples, const std::int64_t* idx, index_t count)
      : samples_(samples), at_(idx), end_(idx ? idx + count : nullptr) {}

  void ask(index_t rows) {
    for (; rows > 0 && at_ != end_; --rows)
      prefetch_row(samples_.row(static_cast<index_t>(*at_++)), samples_.row_bytes);
  }

 private:
  const SamplesAs<T>& samples_;
  const std::int64_t *at_, *end_;
};

}  // namespace detail

}  // namespace byzadmm
