// Softmax regression: mini-batch gradients of all workers, losses and predictions.
//
// A model is W (K, stride) with stride = D + 1, the bias in the last column, or stride = D without a bias. The model
// sees scale * X; the scale multiplies logits and gradients instead of a million features. Samples are taken 32 at a
// time, a tile: converted to T once (uint8 pixels are a quarter of the bytes to gather), multiplied by the classes in
// registers, and used again for the gradient while they are in the cache. What belongs to a tile's samples lies class
// by class, z[k][s]: the softmax of eight samples is then computed at once, without a lane to spare.
#pragma once

#include <cmath>
#include <memory>

#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

namespace detail {

constexpr index_t kBatchTile = 32;
// Products in registers at a time, the most that leaves room for operands: 4 samples x 3 classes for the logits,
// 5 classes x 2 vectors of columns for the gradient.
constexpr index_t kCacheLine = 64;
constexpr int kLogitSamples = 4, kLogitClasses = 3, kGradientClasses = 5;

template <class T>
constexpr index_t padded(index_t size) {
  return (size + simd::lanes<T> - 1) / simd::lanes<T> * simd::lanes<T>;
}

/// The first element at or after p that begins a cache line: vectors at multiples of a vector from it never straddle
/// two.
template <class T>
inline T* line_start(T* p) {
  const auto past = reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(kCacheLine);
  return past == 0 ? p : p + (kCacheLine - static_cast<index_t>(past)) / static_cast<index_t>(sizeof(T));
}

/// f(integral_constant C, k0) over the classes in blocks as equal as they can be, of at most Max.
template <int Max, class F>
BYZ_ALWAYS_INLINE void for_class_blocks(index_t classes, F&& f) {
  for (index_t left = (classes + Max - 1) / Max, k = 0; left > 0; --left) {
    const index_t width = (classes - k + left - 1) / left;
    switch (width) {
      case 1: f(std::integral_constant<int, 1>{}, k); break;
      case 2: f(std::integral_constant<int, 2>{}, k); break;
      case 3: f(std::integral_constant<int, 3>{}, k); break;
      case 4: f(std::integral_constant < int, Max<4 ? Max : 4>{}, k); break;
      default: f(std::integral_constant<int, Max>{}, k); break;
    }
    k += width;
  }
}

/// z[k0 + c][s] = scale * <x_s, w_k> + bias_k for kLogitSamples samples and C classes.
template <class T, int C>
BYZ_ALWAYS_INLINE void logits_block(const T* const* x, const SoftmaxModel<T>& model, index_t k0, T* z) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  constexpr int S = kLogitSamples;
  const index_t D = model.features;
  const T* w = model.w + k0 * model.stride;
  V acc[C][S] = {};
  index_t j = 0;
  for (; j + L <= D; j += L) {
    V xs[S];
    for (int s = 0; s < S; ++s) xs[s] = simd::load(x[s] + j);
    for (int c = 0; c < C; ++c) {
      const V wc = simd::load(w + c * model.stride + j);
      for (int s = 0; s < S; ++s) acc[c][s] = simd::madd<T>(xs[s], wc, acc[c][s]);
    }
  }
  if (j < D) {
    V xs[S];
    for (int s = 0; s < S; ++s) xs[s] = simd::load_part(x[s] + j, D - j);
    for (int c = 0; c < C; ++c) {
      const V wc = simd::load_part(w + c * model.stride + j, D - j);
      for (int s = 0; s < S; ++s) acc[c][s] = simd::madd<T>(xs[s], wc, acc[c][s]);
    }
  }
  for (int c = 0; c < C; ++c) {
    const T bias = model.has_bias() ? w[c * model.stride + D] : T(0);
    T dot[S];
    simd::sum_lanes_of_four<T>(acc[c], dot);
    for (int s = 0; s < S; ++s) z[(k0 + c) * kBatchTile + s] = model.scale * dot[s] + bias;
  }
}

/// z: (K, kBatchTile) logits of the samples x[0..count), which is followed by copies of the last up to a whole block.
/// Classes outermost, so that a block of W stays in L1.
template <class T>
BYZ_NOINLINE void logits(const T* const* x, index_t count, const SoftmaxModel<T>& model, T* z) {
  for_class_blocks<kLogitClasses>(model.classes, [&](auto block, index_t k) {
    for (index_t s = 0; s < count; s += kLogitSamples) logits_block<T, decltype(block)::value>(x + s, model, k, z + s);
  });
}

/// z[k][s] <- softmax(z[.][s])_k for s < count, 0 for the others. A sample with a logit NaN or +inf becomes NaN.
template <class T>
BYZ_NOINLINE void softmax_columns(T* z, index_t count, index_t classes) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  for (index_t s = 0; s < count; s += L) {
    T* column = z + s;
    V top = simd::load(column);
    for (index_t k = 1; k < classes; ++k) top = simd::max(simd::load(column + k * kBatchTile), top);
    V sum{};
    for (index_t k = 0; k < classes; ++k) {
      const V e = simd::exp<T>(simd::load(column + k * kBatchTile) - top);
      simd::store(column + k * kBatchTile, e);
      sum += e;
    }
    for (index_t k = 0; k < classes; ++k)
      simd::store(column + k * kBatchTile, simd::load(column + k * kBatchTile) / sum);
  }
  for (index_t k = 0; k < classes; ++k)
    for (index_t s = count; s < kBatchTile; ++s) z[k * kBatchTile + s] = T(0);
}

/// g[k0 + c][j] += sum_s p[k0 + c][s] x[s][j] for C classes and J vectors of columns from j on (the last one partial).
template <class T, int C, int J>
BYZ_ALWAYS_INLINE void gradient_block(const T* const* x, index_t count, const T* p, T* g, index_t stride, index_t k0,
                                      index_t j, index_t width, bool first) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  const bool whole = width == J * L;
  V acc[C][J] = {};
  p += k0 * kBatchTile;
  for (index_t s = 0; s < count; ++s) {
    V xs[J];
    for (int v = 0; v < J; ++v)
      xs[v] = whole || v + 1 < J ? simd::load(x[s] + j + v * L) : simd::load_part(x[s] + j + v * L, width - v * L);
    for (int c = 0; c < C; ++c) {
      const V pc = simd::splat(p[c * kBatchTile + s]);
      for (int v = 0; v < J; ++v) acc[c][v] = simd::madd<T>(pc, xs[v], acc[c][v]);
    }
  }
  for (int c = 0; c < C; ++c)
    for (int v = 0; v < J; ++v) {
      T* to = g + (k0 + c) * stride + j + v * L;
      if (whole || v + 1 < J) {
        simd::store(to, first ? acc[c][v] : simd::load(to) + acc[c][v]);
      } else {
        const index_t rest = width - v * L;
        simd::store_part(to, first ? acc[c][v] : simd::load_part(to, rest) + acc[c][v], rest);
      }
    }
}

/// g (K, stride) features part (+)= p x.  Panels of columns stay in L1 while every block of classes passes over them.
template <class T>
BYZ_NOINLINE void accumulate_gradient(const T* const* x, index_t count, const T* p, T* g, index_t classes,
                                      index_t features, index_t stride, bool first) {
  constexpr index_t L = simd::lanes<T>, kPanel = 8 * L;
  for (index_t lo = 0; lo < features; lo += kPanel) {
    const index_t hi = lo + kPanel < features ? lo + kPanel : features;
    for_class_blocks<kGradientClasses>(classes, [&](auto block, index_t k) {
      constexpr int C = decltype(block)::value;
      index_t j = lo;
      for (; j + L < hi; j += 2 * L) {
        const index_t width = hi - j < 2 * L ? hi - j : 2 * L;
        gradient_block<T, C, 2>(x, count, p, g, stride, k, j, width, first);
      }
      if (j < hi) gradient_block<T, C, 1>(x, count, p, g, stride, k, j, hi - j, first);
    });
  }
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
    for (index_t s = count; s % kLogitSamples != 0; ++s) row_[s] = row_[count - 1];
    return row_;
  }

 private:
  SamplesAs<T> samples_;
  T* copy_;
  const T* row_[kBatchTile] = {};
};

/// Ask for the rows of a batch that is gathered soon.
template <class T>
inline void prefetch_rows(const SamplesAs<T>& samples, const std::int64_t* idx, index_t count) {
  for (index_t s = 0; s < count; ++s) {
    const char* from = static_cast<const char*>(samples.row(static_cast<index_t>(idx[s])));
    const char* end = from + samples.row_bytes;
    for (; from < end; from += 64) __builtin_prefetch(from);
    __builtin_prefetch(end - 1);
  }
}

/// -log p_y from the logits z[0], z[kBatchTile], ..., in double: log sum_k exp(z_k - top) - (z_y - top).
template <class T>
inline double sample_loss(const T* z, index_t classes, index_t label) {
  T top = z[0];
  for (index_t k = 1; k < classes; ++k) top = z[k * kBatchTile] > top ? z[k * kBatchTile] : top;
  double sum = 0;
  for (index_t k = 0; k < classes; ++k)
    sum += std::exp(static_cast<double>(z[k * kBatchTile]) - static_cast<double>(top));
  return std::log(sum) - (static_cast<double>(z[label * kBatchTile]) - static_cast<double>(top));
}

}  // namespace detail

/// Samples stored as X, read as rows of T.
template <class T, class X>
SamplesAs<T> samples_as(Samples<X> samples) {
  return {reinterpret_cast<const char*>(samples.data), samples.n, samples.d,
          samples.d * static_cast<index_t>(sizeof(X)), std::is_same_v<T, X> ? nullptr : detail::convert_row<T, X>};
}

/// Scratch elements of T that a tile needs per thread: logits, converted samples, and room to align both.
template <class T>
index_t softmax_scratch(const SamplesAs<T>& samples, index_t classes) {
  constexpr index_t line = detail::kCacheLine / static_cast<index_t>(sizeof(T));
  const index_t copy = samples.convert ? detail::kBatchTile * detail::padded<T>(samples.d) : 0;
  return copy + detail::kBatchTile * classes + line;
}

/// One worker: g = (1/B) sum_b (softmax(W x_b) - e_{label(b)}) (scale x_b, 1)^T.  g: (K, stride), distinct from the
/// model.  idx: (B) rows of the samples, or nullptr for rows 0..B-1.
template <class T, class Label>
BYZ_NOINLINE void softmax_gradient_one(const SoftmaxModel<T>& model, const SamplesAs<T>& samples,
                                       const std::int64_t* idx, Label label, index_t B, T* g, T* scratch) {
  using detail::kBatchTile;
  const index_t K = model.classes, D = model.features;
  T* z = detail::line_start(scratch);
  detail::BatchTile<T> tile(samples, z + kBatchTile * K);
  const T share = T(1) / static_cast<T>(B);
  for (index_t lo = 0; lo < B && !stopping(); lo += kBatchTile) {
    const index_t count = B - lo < kBatchTile ? B - lo : kBatchTile;
    const T* const* x = tile.gather(idx ? idx + lo : nullptr, lo, count);
    detail::logits(x, count, model, z);
    detail::softmax_columns(z, count, K);
    for (index_t s = 0; s < count; ++s) z[label(lo + s) * kBatchTile + s] -= T(1);
    for (index_t k = 0; k < K; ++k) {
      using V = simd::vec<T>;
      V sum{};
      for (index_t s = 0; s < kBatchTile; s += simd::lanes<T>) {
        const V p = simd::load(z + k * kBatchTile + s) * share;
        simd::store(z + k * kBatchTile + s, p * model.scale);
        sum += p;
      }
      if (model.has_bias()) {
        T* to = g + k * model.stride + D;
        *to = (lo == 0 ? T(0) : *to) + simd::sum_lanes<T>(sum);
      }
    }
    detail::accumulate_gradient(x, count, z, g, K, D, model.stride, lo == 0);
  }
}

/// All workers: g_i as above.  w, g: (m, K, stride); idx: (m, B) or nullptr (every worker takes all rows, B = n).
template <class T>
BYZ_NOINLINE void softmax_gradient(const SoftmaxModel<T>& shape, const T* w, const SamplesAs<T>& samples,
                                   const std::int64_t* y, const std::int64_t* idx, index_t m, index_t B, T* g,
                                   int threads) {
  const index_t size = shape.classes * shape.stride;
  const index_t scratch = softmax_scratch(samples, shape.classes);
  const index_t slots = threads < m ? threads : m;
  const std::unique_ptr<T[]> buffer(new T[static_cast<std::size_t>(slots * scratch)]);
  for_tasks(m, threads, [&](index_t i, int slot) {
    SoftmaxModel<T> model = shape;
    model.w = w + i * size;
    const std::int64_t* mine = idx ? idx + i * B : nullptr;
    // The rows of the worker that this thread most likely takes next are on their way while this one is computed.
    if (idx && i + 1 < m) detail::prefetch_rows(samples, mine + B, B < detail::kBatchTile ? B : detail::kBatchTile);
    softmax_gradient_one(
        model, samples, mine, [=](index_t b) { return static_cast<index_t>(y[mine ? mine[b] : b]); }, B, g + i * size,
        buffer.get() + slot * scratch);
  });
}

/// visit(first row, count, logits) over tiles of `count` samples idx[0..B) of one model.
template <class T, class Visit>
inline void for_logits(const SoftmaxModel<T>& model, const SamplesAs<T>& samples, const std::int64_t* idx, index_t B,
                       int threads, Visit&& visit) {
  using detail::kBatchTile;
  const index_t scratch = softmax_scratch(samples, model.classes);
  const index_t tiles = (B + kBatchTile - 1) / kBatchTile;
  const index_t slots = threads < tiles ? threads : tiles;
  const std::unique_ptr<T[]> buffer(new T[static_cast<std::size_t>(slots * scratch)]);
  for_tiles(B, kBatchTile, threads, [&](index_t lo, index_t hi, int slot) {
    T* z = detail::line_start(buffer.get() + slot * scratch);
    detail::BatchTile<T> tile(samples, z + kBatchTile * model.classes);
    const T* const* x = tile.gather(idx ? idx + lo : nullptr, lo, hi - lo);
    detail::logits(x, hi - lo, model, z);
    visit(lo, hi - lo, z);
  });
}

/// Mean of -log p_y over the samples idx[0..B) (rows 0..B-1 without idx); tile sums are added in order.
template <class T>
BYZ_NOINLINE double softmax_loss(const SoftmaxModel<T>& model, const SamplesAs<T>& samples, const std::int64_t* y,
                                 const std::int64_t* idx, index_t B, int threads) {
  const index_t tiles = (B + detail::kBatchTile - 1) / detail::kBatchTile;
  const std::unique_ptr<double[]> partial(new double[static_cast<std::size_t>(tiles)]());
  for_logits(model, samples, idx, B, threads, [&](index_t lo, index_t count, const T* z) {
    double sum = 0;
    for (index_t s = 0; s < count; ++s)
      sum += detail::sample_loss(z + s, model.classes, static_cast<index_t>(y[idx ? idx[lo + s] : lo + s]));
    partial[static_cast<std::size_t>(lo / detail::kBatchTile)] = sum;
  });
  double total = 0;
  for (index_t t = 0; t < tiles; ++t) total += partial[static_cast<std::size_t>(t)];
  return total / static_cast<double>(B);
}

/// out_s = the class of the largest logit, the lowest of equals; a NaN logit counts as largest, as in numpy.argmax.
template <class T>
BYZ_NOINLINE void softmax_predict(const SoftmaxModel<T>& model, const SamplesAs<T>& samples, std::int64_t* out,
                                  int threads) {
  for_logits(model, samples, nullptr, samples.n, threads, [&](index_t lo, index_t count, const T* z) {
    for (index_t s = 0; s < count; ++s) {
      const auto logit = [=](index_t k) { return z[k * detail::kBatchTile + s]; };
      index_t best = 0;
      for (index_t k = 1; k < model.classes && logit(best) == logit(best); ++k)
        if (!(logit(k) <= logit(best))) best = k;
      out[lo + s] = best;
    }
  });
}

}  // namespace byzadmm
