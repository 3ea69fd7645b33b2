// Outputs z = W (scale x, 1) of one model for many samples, as evaluations need them.
//
// A block is a vector of features. Four in five pixels of a handwritten digit are zero, and a block of zeros changes no
// sum, so that three blocks in five are skipped; the others are converted in registers. W is packed once per call, its
// rows side by side, in panels of 64 blocks that stay in L1 while a tile of samples passes over them. Sums are formed
// in the order of detail::outputs (linear.hpp): the same bits.
#pragma once

#include <memory>

#include "byzadmm/parallel.hpp"
#include "byzadmm/samples.hpp"

namespace byzadmm {

namespace detail {

constexpr int kPackedOutputs = 12;  // sums in registers at a time
constexpr index_t kPanel = 64;      // blocks: bits of a mask

/// f(integral_constant C) for C = width, 1 <= width <= Max.
template <int Max, class F>
BYZ_ALWAYS_INLINE void with_width(index_t width, F&& f) {
  if constexpr (Max > 1)
    if (width < Max) return with_width<Max - 1>(width, f);
  f(std::integral_constant<int, Max>{});
}

/// W with its rows in groups as equal as they can be, of at most kPackedOutputs: the C rows from k on begin at
/// k * padded(D) and lie (blocks, C, lanes), with zeros after the last feature.
template <class T>
class PackedModel {
 public:
  PackedModel(const LinearModel<T>& model, int threads)
      : model_(model), groups_((model.outputs + kPackedOutputs - 1) / kPackedOutputs) {
    constexpr index_t L = simd::lanes<T>;
    const index_t D = model.features, width = padded<T>(D);
    buffer_.reset(new T[static_cast<std::size_t>(model.outputs * width + kCacheLine)]);
    w_ = line_start(buffer_.get());
    std::atomic<bool> finite{true};
    for_tasks(groups_, threads, [&](index_t g, int) {
      const index_t k0 = first(g), C = first(g + 1) - k0;
      T sum = T(0);  // of w - w: NaN if one is not finite
      for (index_t c = 0; c < C; ++c) {
        const T* from = model.w + (k0 + c) * model.stride;
        T* to = w_ + k0 * width + c * L;
        for (index_t j = 0; j < width; j += L, to += C * L)
          for (index_t l = 0; l < L; ++l) {
            to[l] = j + l < D ? from[j + l] : T(0);
            sum += to[l] - to[l];
          }
      }
      if (sum != sum) finite.store(false, std::memory_order_relaxed);
    });
    finite_ = finite.load(std::memory_order_relaxed);
  }

  const LinearModel<T>& model() const { return model_; }
  index_t groups() const { return groups_; }
  index_t first(index_t group) const { return group * model_.outputs / groups_; }
  const T* from(index_t row) const { return w_ + row * padded<T>(model_.features); }

  /// Whether 0 * w is 0 for every w.
  bool finite() const { return finite_; }

 private:
  LinearModel<T> model_;
  index_t groups_;
  std::unique_ptr<T[]> buffer_;
  T* w_ = nullptr;
  bool finite_ = true;
};

/// Sums of products of one sample with C rows of W, which lie (blocks, C, lanes).
template <int C, class T>
struct Products {
  using V = simd::vec<T>;
  static constexpr index_t L = simd::lanes<T>;
  V sum[C];

  BYZ_ALWAYS_INLINE void add(V x, const T* w) {
    asm("" : "+r"(w));  // one address for all C loads, instead of a register for each
    for (int c = 0; c < C; ++c) sum[c] = simd::madd<T>(x, simd::load(w + c * L), sum[c]);
  }

  /// Blocks b < blocks of x; of bytes those whose bit in `nonzero` is set.
  template <class X>
  BYZ_ALWAYS_INLINE void add_blocks(const X* x, index_t blocks, std::uint64_t nonzero, const T* w) {
    if constexpr (std::is_same_v<X, std::uint8_t>) {
      for (std::uint64_t left = nonzero; left != 0; left &= left - 1) {
        const auto b = static_cast<index_t>(__builtin_ctzll(left));
        add(simd::load_as<T>(x + b * L), w + b * (C * L));
      }
    } else {
      for (index_t b = 0; b < blocks; ++b) add(simd::load_as<T>(x + b * L), w + b * (C * L));
    }
  }

  /// z[c][0] = sum of the lanes of sum[c]
  BYZ_ALWAYS_INLINE void finish(T* z) const {
    for (int c = 0; c < C; c += 4) {
      T dot[4];
      const auto at = [&](int i) { return sum[i < C ? i : C - 1]; };
      simd::sum_lanes_of_four<T>({at(c), at(c + 1), at(c + 2), at(c + 3)}, dot);
      for (int i = 0; i < 4 && c + i < C; ++i) z[(c + i) * kBatchTile] = dot[i];
    }
  }
};

/// z[c][s] = <x_s, w_c> for the samples row[0..count) of D features of type X and C rows of W. The rows kBatchTile
/// after each are read soon. Which blocks of a panel are zero is known before the first product, so that the processor
/// sees the end of a sample long before it gets there.
template <int C, class T, class X>
BYZ_NOINLINE void products(const void* const* row, index_t count, index_t D, bool all, const T* w, T* z) {
  constexpr index_t L = simd::lanes<T>;
  const index_t whole = D / L, rest = D - whole * L;
  Products<C, T> between[kBatchTile];  // panels
  for (index_t lo = 0; lo == 0 || lo < whole; lo += kPanel) {
    const index_t blocks = whole - lo < kPanel ? whole - lo : kPanel;
    std::uint64_t nonzero[kBatchTile] = {};
    if constexpr (std::is_same_v<X, std::uint8_t>)
      for (index_t s = 0; s < count && blocks > 0; ++s)
        nonzero[s] = simd::nonzero_blocks<T>(static_cast<const X*>(row[s]) + lo * L, blocks, all);
    for (index_t s = 0; s < count; ++s) {
      const X* x = static_cast<const X*>(row[s]) + lo * L;
      if (lo == 0) prefetch_row(row[s + kBatchTile], D * static_cast<index_t>(sizeof(X)));
      Products<C, T> now;
      for (int c = 0; c < C; ++c) now.sum[c] = lo > 0 ? between[s].sum[c] : simd::vec<T>{};
      if (blocks > 0) now.add_blocks(x, blocks, nonzero[s], w + lo * C * L);
      if (lo + kPanel < whole) {
        between[s] = now;
        continue;
      }
      if (rest > 0) now.add(simd::load_part_as<T>(x + blocks * L, rest), w + whole * C * L);
      now.finish(z + s);
    }
  }
}

/// z[k][s] = scale * <x_s, w_k> + bias_k for the samples row[0..count) of type X.
template <class T, class X>
BYZ_NOINLINE void packed_outputs(const PackedModel<T>& packed, const void* const* row, index_t count, T* z) {
  constexpr index_t L = simd::lanes<T>;
  const LinearModel<T>& model = packed.model();
  for (index_t g = 0; g < packed.groups() && !stopping(); ++g) {
    const index_t k = packed.first(g);
    with_width<kPackedOutputs>(packed.first(g + 1) - k, [&](auto width) BYZ_LAMBDA_INLINE {
      products<decltype(width)::value, T, X>(row, count, model.features, !packed.finite(), packed.from(k),
                                             z + k * kBatchTile);
    });
  }
  for (index_t k = 0; k < model.outputs; ++k) {
    const T bias = model.has_bias() ? model.w[k * model.stride + model.features] : T(0);
    for (index_t s = 0; s < kBatchTile; s += L)
      simd::store(z + k * kBatchTile + s, simd::load(z + k * kBatchTile + s) * model.scale + bias);
  }
}

}  // namespace detail

/// visit(first row, count, outputs z) over tiles of `count` samples idx[0..B) of one model; z: (K, kBatchTile).
template <class T, class Visit>
inline void for_outputs(const LinearModel<T>& model, const SamplesAs<T>& samples, const std::int64_t* idx, index_t B,
                        int threads, Visit&& visit) {
  const detail::PackedModel<T> packed(model, threads);
  const index_t scratch = kBatchTile * model.outputs;
  const index_t tiles = (B + kBatchTile - 1) / kBatchTile;
  const index_t slots = threads < tiles ? threads : tiles;
  const std::unique_ptr<T[]> buffer(new T[static_cast<std::size_t>(slots * scratch)]());
  for_tiles(B, kBatchTile, threads, [&](index_t lo, index_t hi, int slot) {
    T* z = buffer.get() + slot * scratch;
    const void* row[2 * kBatchTile];
    for (index_t s = 0; s < hi - lo + kBatchTile; ++s) {
      const index_t b = lo + s < B ? lo + s : B - 1;
      row[s] = samples.row(idx ? static_cast<index_t>(idx[b]) : b);
    }
    samples.outputs(packed, row, hi - lo, z);
    visit(lo, hi - lo, z);
  });
}

/// Samples stored as X, read as rows of T.
template <class T, class X>
SamplesAs<T> samples_as(Samples<X> samples) {
  return {reinterpret_cast<const char*>(samples.data),
          samples.n,
          samples.d,
          samples.d * static_cast<index_t>(sizeof(X)),
          std::is_same_v<T, X> ? nullptr : detail::convert_row<T, X>,
          detail::packed_outputs<T, X>};
}

}  // namespace byzadmm
