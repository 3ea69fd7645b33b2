// Softmax regression: mini-batch gradients of all workers, losses and predictions.
//
// A model is W (K, stride) with stride = D + 1, the bias in the last column, or stride = D without a bias. The model
// sees scale * X; the scale multiplies logits and gradients instead of a million features. Samples are taken 32 at a
// time: converted to T once (uint8 pixels are a quarter of the bytes to gather), multiplied by the classes five at a
// time in registers, and used again for the gradient while they are in the cache.
#pragma once

#include <cmath>
#include <memory>

#include "byzadmm/parallel.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

template <class T>
struct SoftmaxModel {
  const T* w;        // (K, stride)
  index_t classes;   // K
  index_t features;  // D
  index_t stride;    // D + 1 with a bias, D without
  T scale;
  bool has_bias() const { return stride > features; }
};

namespace detail {

constexpr index_t kBatchTile = 32;
constexpr int kClassBlock = 5;  // 2 samples x 5 classes = 10 accumulators: the most that leaves registers for operands

template <class T>
constexpr index_t padded(index_t size) {
  return (size + simd::lanes<T> - 1) / simd::lanes<T> * simd::lanes<T>;
}

/// z[s][k] = scale * <x_s, w_k> + bias_k for S samples and C classes; z has row length ldz.
template <class T, int S, int C>
BYZ_ALWAYS_INLINE void logits_block(const T* const* x, const SoftmaxModel<T>& model, index_t k0, T* z, index_t ldz) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  const index_t D = model.features;
  const T* w = model.w + k0 * model.stride;
  V acc[S][C] = {};
  index_t j = 0;
  for (; j + L <= D; j += L) {
    V xs[S];
    for (int s = 0; s < S; ++s) xs[s] = simd::load(x[s] + j);
    for (int c = 0; c < C; ++c) {
      const V wc = simd::load(w + c * model.stride + j);
      for (int s = 0; s < S; ++s) acc[s][c] = simd::madd<T>(xs[s], wc, acc[s][c]);
    }
  }
  if (j < D)
    for (int c = 0; c < C; ++c) {
      const V wc = simd::load_part(w + c * model.stride + j, D - j);
      for (int s = 0; s < S; ++s) acc[s][c] = simd::madd<T>(simd::load_part(x[s] + j, D - j), wc, acc[s][c]);
    }
  for (int s = 0; s < S; ++s)
    for (int c = 0; c < C; ++c) {
      const T bias = model.has_bias() ? w[c * model.stride + D] : T(0);
      z[s * ldz + k0 + c] = model.scale * simd::sum_lanes<T>(acc[s][c]) + bias;
    }
}

/// f(integral_constant C, k0) over the classes in blocks of kClassBlock and one shorter block.
template <class F>
BYZ_ALWAYS_INLINE void for_class_blocks(index_t classes, F&& f) {
  index_t k = 0;
  for (; k + kClassBlock <= classes; k += kClassBlock) f(std::integral_constant<int, kClassBlock>{}, k);
  switch (classes - k) {
    case 1: f(std::integral_constant<int, 1>{}, k); break;
    case 2: f(std::integral_constant<int, 2>{}, k); break;
    case 3: f(std::integral_constant<int, 3>{}, k); break;
    case 4: f(std::integral_constant<int, 4>{}, k); break;
    default: break;
  }
}

/// z: (count, ldz) logits of the samples x[0..count). Classes outermost, so that a block of W stays in L1.
template <class T>
BYZ_NOINLINE void logits(const T* const* x, index_t count, const SoftmaxModel<T>& model, T* z, index_t ldz) {
  for_class_blocks(model.classes, [&](auto block, index_t k) {
    constexpr int C = decltype(block)::value;
    index_t s = 0;
    for (; s + 2 <= count; s += 2) logits_block<T, 2, C>(x + s, model, k, z + s * ldz, ldz);
    if (s < count) logits_block<T, 1, C>(x + s, model, k, z + s * ldz, ldz);
  });
}

/// z <- softmax(z), row by row; padding lanes end as 0. Returns nothing: a row with NaN or +inf becomes NaN.
template <class T>
inline void softmax_rows(T* z, index_t count, index_t classes, index_t ldz) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  for (index_t s = 0; s < count; ++s, z += ldz) {
    T top = z[0];
    for (index_t k = 1; k < classes; ++k) top = z[k] > top ? z[k] : top;
    for (index_t k = classes; k < ldz; ++k) z[k] = -static_cast<T>(__builtin_inf());
    V sum{};
    for (index_t k = 0; k < ldz; k += L) {
      const V e = simd::exp<T>(simd::load(z + k) - top);
      simd::store(z + k, e);
      sum += e;
    }
    const T total = simd::sum_lanes<T>(sum);
    for (index_t k = 0; k < ldz; k += L) simd::store(z + k, simd::load(z + k) / total);
  }
}

/// g[k0 + c][j] += sum_s p[s][k0 + c] x[s][j] for C classes and J vectors of columns from j on (the last one partial).
template <class T, int C, int J>
BYZ_ALWAYS_INLINE void gradient_block(const T* const* x, index_t count, const T* p, index_t ldp, T* g, index_t stride,
                                      index_t k0, index_t j, index_t width, bool first) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  const bool whole = width == J * L;
  V acc[C][J] = {};
  for (index_t s = 0; s < count; ++s) {
    V xs[J];
    for (int v = 0; v < J; ++v)
      xs[v] = whole || v + 1 < J ? simd::load(x[s] + j + v * L) : simd::load_part(x[s] + j + v * L, width - v * L);
    for (int c = 0; c < C; ++c) {
      const V pc = simd::splat(p[s * ldp + k0 + c]);
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

/// g (K, stride) features part (+)= p^T x.  Panels of columns stay in L1 while every block of classes passes over them.
template <class T>
BYZ_NOINLINE void accumulate_gradient(const T* const* x, index_t count, const T* p, index_t ldp, T* g, index_t classes,
                                      index_t features, index_t stride, bool first) {
  constexpr index_t L = simd::lanes<T>, kPanel = 8 * L;
  for (index_t lo = 0; lo < features; lo += kPanel) {
    const index_t hi = lo + kPanel < features ? lo + kPanel : features;
    for_class_blocks(classes, [&](auto block, index_t k) {
      constexpr int C = decltype(block)::value;
      index_t j = lo;
      for (; j + 2 * L <= hi; j += 2 * L) gradient_block<T, C, 2>(x, count, p, ldp, g, stride, k, j, 2 * L, first);
      for (; j < hi; j += L) gradient_block<T, C, 1>(x, count, p, ldp, g, stride, k, j, hi - j < L ? hi - j : L, first);
    });
  }
}

/// Up to kBatchTile samples as rows of T: pointers into the data when it has that type, a converted copy otherwise.
template <class T, class X>
class BatchTile {
 public:
  BatchTile(Samples<X> samples, T* copy) : samples_(samples), copy_(copy) {}

  static index_t copy_size(index_t features) { return std::is_same_v<T, X> ? 0 : kBatchTile * padded<T>(features); }

  /// Samples idx[0..count) (or first, first + 1, ... without idx).
  const T* const* gather(const std::int64_t* idx, index_t first, index_t count) {
    for (index_t s = 0; s < count; ++s) {
      const X* from = samples_.data + (idx ? static_cast<index_t>(idx[s]) : first + s) * samples_.d;
      if constexpr (std::is_same_v<T, X>) {
        row_[s] = from;
      } else {
        T* to = copy_ + s * padded<T>(samples_.d);
        for (index_t j = 0; j < samples_.d; ++j) to[j] = static_cast<T>(from[j]);
        row_[s] = to;
      }
    }
    return row_;
  }

  /// Ask for the rows of a batch that is gathered next.
  void prefetch(const std::int64_t* idx, index_t count) const {
    for (index_t s = 0; s < count; ++s) {
      const char* from = reinterpret_cast<const char*>(samples_.data + static_cast<index_t>(idx[s]) * samples_.d);
      for (index_t b = 0; b < samples_.d * static_cast<index_t>(sizeof(X)); b += 64) __builtin_prefetch(from + b);
    }
  }

 private:
  Samples<X> samples_;
  T* copy_;
  const T* row_[kBatchTile] = {};
};

/// -log p_y from logits z, in double: log sum_k exp(z_k - top) - (z_y - top).
template <class T>
inline double sample_loss(const T* z, index_t classes, index_t label) {
  T top = z[0];
  for (index_t k = 1; k < classes; ++k) top = z[k] > top ? z[k] : top;
  double sum = 0;
  for (index_t k = 0; k < classes; ++k) sum += std::exp(static_cast<double>(z[k]) - static_cast<double>(top));
  return std::log(sum) - (static_cast<double>(z[label]) - static_cast<double>(top));
}

}  // namespace detail

/// Scratch elements of T that softmax_gradient needs per thread.
template <class T, class X>
index_t softmax_scratch(index_t features, index_t classes) {
  return detail::BatchTile<T, X>::copy_size(features) + detail::kBatchTile * detail::padded<T>(classes);
}

/// One worker: g = (1/B) sum_b (softmax(W x_b) - e_{y_b}) (scale x_b, 1)^T.  g: (K, stride), distinct from the model.
/// idx: (B) rows of the samples, or nullptr for rows 0..B-1; next: the batch of the next worker, or nullptr.
template <class T, class X>
BYZ_NOINLINE void softmax_gradient_one(const SoftmaxModel<T>& model, Samples<X> samples, const std::int64_t* y,
                                       const std::int64_t* idx, const std::int64_t* next, index_t B, T* g, T* scratch) {
  using detail::kBatchTile;
  const index_t K = model.classes, D = model.features, ldz = detail::padded<T>(K);
  T* z = scratch;
  detail::BatchTile<T, X> tile(samples, scratch + kBatchTile * ldz);
  const T share = T(1) / static_cast<T>(B);
  for (index_t lo = 0; lo < B; lo += kBatchTile) {
    const index_t count = B - lo < kBatchTile ? B - lo : kBatchTile;
    const T* const* x = tile.gather(idx ? idx + lo : nullptr, lo, count);
    if (next) tile.prefetch(next + lo, count);
    detail::logits(x, count, model, z, ldz);
    detail::softmax_rows(z, count, K, ldz);
    for (index_t s = 0; s < count; ++s) {
      T* p = z + s * ldz;
      p[y[idx ? idx[lo + s] : lo + s]] -= T(1);
      for (index_t k = 0; k < K; ++k) p[k] *= share;
    }
    if (model.has_bias())
      for (index_t k = 0; k < K; ++k) {
        T sum = lo == 0 ? T(0) : g[k * model.stride + D];
        for (index_t s = 0; s < count; ++s) sum += z[s * ldz + k];
        g[k * model.stride + D] = sum;
      }
    for (index_t s = 0; s < count; ++s)
      for (index_t k = 0; k < K; ++k) z[s * ldz + k] *= model.scale;
    detail::accumulate_gradient(x, count, z, ldz, g, K, D, model.stride, lo == 0);
  }
}

/// All workers: g_i as above.  w, g: (m, K, stride); idx: (m, B) or nullptr (every worker takes all rows, B = n).
template <class T, class X>
BYZ_NOINLINE void softmax_gradient(const SoftmaxModel<T>& shape, const T* w, Samples<X> samples, const std::int64_t* y,
                                   const std::int64_t* idx, index_t m, index_t B, T* g, int threads) {
  const index_t size = shape.classes * shape.stride;
  const index_t scratch = softmax_scratch<T, X>(shape.features, shape.classes);
  const index_t slots = threads < m ? threads : m;
  const std::unique_ptr<T[]> buffer(new T[static_cast<std::size_t>(slots * scratch)]);
  for_tasks(m, threads, [&](index_t i, int slot) {
    SoftmaxModel<T> model = shape;
    model.w = w + i * size;
    const std::int64_t* mine = idx ? idx + i * B : nullptr;
    softmax_gradient_one(model, samples, y, mine, idx && i + 1 < m ? mine + B : nullptr, B, g + i * size,
                         buffer.get() + slot * scratch);
  });
}

/// visit(first row, count, logits, ldz, slot) over tiles of `count` samples idx[0..B) of one model.
template <class T, class X, class Visit>
inline void for_logits(const SoftmaxModel<T>& model, Samples<X> samples, const std::int64_t* idx, index_t B,
                       int threads, Visit&& visit) {
  using detail::kBatchTile;
  const index_t ldz = detail::padded<T>(model.classes);
  const index_t scratch = softmax_scratch<T, X>(model.features, model.classes);
  const index_t tiles = (B + kBatchTile - 1) / kBatchTile;
  const index_t slots = threads < tiles ? threads : tiles;
  const std::unique_ptr<T[]> buffer(new T[static_cast<std::size_t>(slots * scratch)]);
  for_tiles(B, kBatchTile, threads, [&](index_t lo, index_t hi, int slot) {
    T* z = buffer.get() + slot * scratch;
    detail::BatchTile<T, X> tile(samples, z + kBatchTile * ldz);
    const T* const* x = tile.gather(idx ? idx + lo : nullptr, lo, hi - lo);
    detail::logits(x, hi - lo, model, z, ldz);
    visit(lo, hi - lo, z, ldz);
  });
}

/// Mean of -log p_y over the samples idx[0..B) (rows 0..B-1 without idx); tile sums are added in order.
template <class T, class X>
BYZ_NOINLINE double softmax_loss(const SoftmaxModel<T>& model, Samples<X> samples, const std::int64_t* y,
                                 const std::int64_t* idx, index_t B, int threads) {
  const index_t tiles = (B + detail::kBatchTile - 1) / detail::kBatchTile;
  const std::unique_ptr<double[]> partial(new double[static_cast<std::size_t>(tiles)]());
  for_logits(model, samples, idx, B, threads, [&](index_t lo, index_t count, const T* z, index_t ldz) {
    double sum = 0;
    for (index_t s = 0; s < count; ++s)
      sum += detail::sample_loss(z + s * ldz, model.classes, static_cast<index_t>(y[idx ? idx[lo + s] : lo + s]));
    partial[static_cast<std::size_t>(lo / detail::kBatchTile)] = sum;
  });
  double total = 0;
  for (index_t t = 0; t < tiles; ++t) total += partial[static_cast<std::size_t>(t)];
  return total / static_cast<double>(B);
}

/// out_s = the class of the largest logit, the lowest of equals; a NaN logit counts as largest, as in numpy.argmax.
template <class T, class X>
BYZ_NOINLINE void softmax_predict(const SoftmaxModel<T>& model, Samples<X> samples, std::int64_t* out, int threads) {
  for_logits(model, samples, nullptr, samples.n, threads, [&](index_t lo, index_t count, const T* z, index_t ldz) {
    for (index_t s = 0; s < count; ++s) {
      const T* row = z + s * ldz;
      index_t best = 0;
      for (index_t k = 1; k < model.classes && row[best] == row[best]; ++k)
        if (!(row[k] <= row[best])) best = k;
      out[lo + s] = best;
    }
  });
}

}  // namespace byzadmm
