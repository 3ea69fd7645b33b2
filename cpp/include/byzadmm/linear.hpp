// Linear models z = W (scale x, 1): mini-batch gradients of all workers, losses and predictions.
//
// A model is W (K, stride) with stride = D + 1, the bias in the last column, or stride = D without a bias: a row for
// each class of softmax regression, one row for logistic and linear regression. The model sees scale * X; the scale
// multiplies outputs and gradients instead of a million features. Samples are taken 32 at a time, a tile: converted to
// T once (uint8 pixels are a quarter of the bytes to gather), multiplied by the rows of W in registers, and used again
// for the gradient while they are in the cache. What belongs to a tile's samples lies output by output, z[k][s]: a loss
// then treats eight samples at once, without a lane to spare.
//
// A loss F(z, y) of the outputs is a type (Softmax in softmax.hpp, Logistic and LeastSquares in regression.hpp) with
//   Target                                what y is
//   residuals(z, count, K, target)        z[k][s] <- dF/dz_k at y = target(s) for s < count, 0 for the others
//   losses(z, count, K, target, out)      out[s] = F of sample s < count, in double
//   curvature(z, u, count, K)             u[k][s] <- (d2F/dz2 u)_k for s < count, 0 for the others (hessian.hpp)
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "byzadmm/outputs.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/samples.hpp"
#include "byzadmm/simd.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

namespace detail {

// Products in registers at a time, the most that leaves room for operands: 4 samples x 3 rows of W for the
// outputs, 5 rows x 2 vectors of columns for the gradient.
constexpr int kBlockOutputs = 3, kGradientOutputs = 5;

/// f(integral_constant C, k0) over the outputs in blocks as equal as they can be, of at most Max.
template <int Max, class F>
BYZ_ALWAYS_INLINE void for_output_blocks(index_t outputs, F&& f) {
  for (index_t left = (outputs + Max - 1) / Max, k = 0; left > 0; --left) {
    const index_t width = (outputs - k + left - 1) / left;
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

/// z[k0 + c][s] = scale * <x_s, w_k> + bias_k for kBlockSamples samples and C outputs.
template <class T, int C>
BYZ_ALWAYS_INLINE void outputs_block(const T* const* x, const LinearModel<T>& model, index_t k0, T* z) {
  using V = simd::vec<T>;
  constexpr index_t L = simd::lanes<T>;
  constexpr int S = kBlockSamples;
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

/// z: (K, kBatchTile) outputs of the samples x[0..count), which is followed by copies of the last up to a whole block.
/// Classes outermost, so that a block of W stays in L1. Meanwhile the rows of the next tile are on their way.
template <class T>
BYZ_NOINLINE void outputs(const T* const* x, index_t count, const LinearModel<T>& model, T* z, RowsAhead<T> next) {
  const index_t blocks =
      (model.outputs + kBlockOutputs - 1) / kBlockOutputs * ((count + kBlockSamples - 1) / kBlockSamples);
  const index_t rows = (kBatchTile + blocks - 1) / blocks;
  for_output_blocks<kBlockOutputs>(model.outputs, [&](auto block, index_t k) {
    for (index_t s = 0; s < count; s += kBlockSamples) {
      next.ask(rows);
      outputs_block<T, decltype(block)::value>(x + s, model, k, z + s);
    }
  });
}

/// g[k0 + c][j] += sum_s p[k0 + c][s] x[s][j] for C outputs and J vectors of columns from j on (the last one partial).
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

/// g (K, stride) features part (+)= p x.  Panels of columns stay in L1 while every block of outputs passes over them.
template <class T>
BYZ_NOINLINE void accumulate_gradient(const T* const* x, index_t count, const T* p, T* g, index_t outputs,
                                      index_t features, index_t stride, bool first) {
  constexpr index_t L = simd::lanes<T>, kPanel = 8 * L;
  for (index_t lo = 0; lo < features; lo += kPanel) {
    const index_t hi = lo + kPanel < features ? lo + kPanel : features;
    for_output_blocks<kGradientOutputs>(outputs, [&](auto block, index_t k) {
      constexpr int C = decltype(block)::value;
      index_t j = lo;
      if constexpr (C == 1)  // a lone output needs more sums side by side to hide the latency of each
        for (; j + 3 * L < hi; j += 4 * L) {
          const index_t width = hi - j < 4 * L ? hi - j : 4 * L;
          gradient_block<T, C, 4>(x, count, p, g, stride, k, j, width, first);
        }
      for (; j + L < hi; j += 2 * L) {
        const index_t width = hi - j < 2 * L ? hi - j : 2 * L;
        gradient_block<T, C, 2>(x, count, p, g, stride, k, j, width, first);
      }
      if (j < hi) gradient_block<T, C, 1>(x, count, p, g, stride, k, j, hi - j, first);
    });
  }
}

/// g (K, stride) (+)= share * sum_s r[.][s] (scale x_s, 1)^T over the samples of a tile. r (K, kBatchTile) is 0 past
/// the last of them, and changes.
template <class T>
BYZ_ALWAYS_INLINE void add_outer_products(const LinearModel<T>& model, const T* const* x, index_t count, T share, T* r,
                                          T* g, bool first) {
  using V = simd::vec<T>;
  for (index_t k = 0; k < model.outputs; ++k) {
    V sum{};
    for (index_t s = 0; s < kBatchTile; s += simd::lanes<T>) {
      const V p = simd::load(r + k * kBatchTile + s) * share;
      simd::store(r + k * kBatchTile + s, p * model.scale);
      sum += p;
    }
    if (model.has_bias()) {
      T* to = g + k * model.stride + model.features;
      *to = (first ? T(0) : *to) + simd::sum_lanes<T>(sum);
    }
  }
  accumulate_gradient(x, count, r, g, model.outputs, model.features, model.stride, first);
}

}  // namespace detail

/// Scratch elements of T that a tile needs per thread: outputs, converted samples, and room to align both.
template <class T>
index_t linear_scratch(const SamplesAs<T>& samples, index_t outputs) {
  constexpr index_t line = detail::kCacheLine / static_cast<index_t>(sizeof(T));
  const index_t copy = samples.convert ? kBatchTile * detail::padded<T>(samples.d) : 0;
  return copy + kBatchTile * outputs + line;
}

/// One worker: g = (1/B) sum_b dF/dz(W x_b, target(b)) (scale x_b, 1)^T.  g: (K, stride), distinct from the model.
/// idx: (B) rows of the samples, or nullptr for rows 0..B-1; next: (B) those that are most likely taken after them, or
/// nullptr.
template <class F, class T, class Target>
BYZ_NOINLINE void linear_gradient_one(const LinearModel<T>& model, const SamplesAs<T>& samples, const std::int64_t* idx,
                                      const std::int64_t* next, Target target, index_t B, T* g, T* scratch) {
  const index_t K = model.outputs;
  T* z = detail::line_start(scratch);
  detail::BatchTile<T> tile(samples, z + kBatchTile * K);
  const T share = T(1) / static_cast<T>(B);
  for (index_t lo = 0; lo < B && !stopping(); lo += kBatchTile) {
    const index_t hi = lo + kBatchTile < B ? lo + kBatchTile : B, count = hi - lo;
    const T* const* x = tile.gather(idx ? idx + lo : nullptr, lo, count);
    const bool last = hi == B;
    const std::int64_t* ahead = last ? next : idx ? idx + hi : nullptr;
    detail::outputs(x, count, model, z, {samples, ahead, std::min(last ? B : B - hi, kBatchTile)});
    F::residuals(z, count, K, [&](index_t s) { return target(lo + s); });
    detail::add_outer_products(model, x, count, share, z, g, lo == 0);
  }
}

/// All workers: g_i as above.  w, g: (m, K, stride); idx: (m, B) or nullptr (every worker takes all rows, B = n).
template <class F, class T>
BYZ_NOINLINE void linear_gradient(const LinearModel<T>& shape, const T* w, const SamplesAs<T>& samples,
                                  const typename F::Target* y, const std::int64_t* idx, index_t m, index_t B, T* g,
                                  int threads) {
  const index_t size = shape.outputs * shape.stride;
  const index_t scratch = linear_scratch(samples, shape.outputs);
  const index_t slots = threads < m ? threads : m;
  const std::unique_ptr<T[]> buffer(new T[static_cast<std::size_t>(slots * scratch)]);
  for_tasks(m, threads, [&](index_t i, int slot) {
    LinearModel<T> model = shape;
    model.w = w + i * size;
    const std::int64_t* mine = idx ? idx + i * B : nullptr;
    linear_gradient_one<F>(
        model, samples, mine, idx && i + 1 < m ? mine + B : nullptr, [=](index_t b) { return y[mine ? mine[b] : b]; },
        B, g + i * size, buffer.get() + slot * scratch);
  });
}

/// Mean of F over the samples idx[0..B) (rows 0..B-1 without idx); tile sums are added in order.
template <class F, class T>
BYZ_NOINLINE double linear_loss(const LinearModel<T>& model, const SamplesAs<T>& samples, const typename F::Target* y,
                                const std::int64_t* idx, index_t B, int threads) {
  const index_t tiles = (B + kBatchTile - 1) / kBatchTile;
  const std::unique_ptr<double[]> partial(new double[static_cast<std::size_t>(tiles)]());
  for_outputs(model, samples, idx, B, threads, [&](index_t lo, index_t count, const T* z) {
    double loss[kBatchTile], sum = 0;
    F::losses(z, count, model.outputs, [&](index_t s) { return y[idx ? idx[lo + s] : lo + s]; }, loss);
    for (index_t s = 0; s < count; ++s) sum += loss[s];
    partial[static_cast<std::size_t>(lo / kBatchTile)] = sum;
  });
  double total = 0;
  for (index_t t = 0; t < tiles; ++t) total += partial[static_cast<std::size_t>(t)];
  return total / static_cast<double>(B);
}

/// out_s = the output of a model with one, for every sample.
template <class T>
BYZ_NOINLINE void linear_predict(const LinearModel<T>& model, const SamplesAs<T>& samples, T* out, int threads) {
  for_outputs(model, samples, nullptr, samples.n, threads, [&](index_t lo, index_t count, const T* z) {
    for (index_t s = 0; s < count; ++s) out[lo + s] = z[s];
  });
}

}  // namespace byzadmm
