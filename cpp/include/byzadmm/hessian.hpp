// Hessians of linear models (linear.hpp) times vectors, for Newton's method: the matrix itself is never formed.
//
// The Hessian of a mean loss at W is (1/B) sum_b A_b^T (d2F/dz2)(W a_b) A_b with A_b V = V a_b, a_b = (scale x_b, 1).
// Its product with V needs the outputs of W and of V for a tile of samples, the curvature of the loss between the two,
// and the outer products that a gradient is made of. It does not depend on the targets.
#pragma once

#include <memory>

#include "byzadmm/linear.hpp"

namespace byzadmm {

namespace detail {

// A worker's samples are divided into parts by their number alone, so that one worker occupies several threads and the
// sums are the same for every number of threads.
constexpr index_t kPartRows = 16 * kBatchTile, kMostParts = 16;

/// Samples of a part: whole tiles.
constexpr index_t part_rows(index_t B) {
  const index_t rows = (B + kMostParts - 1) / kMostParts;
  return rows <= kPartRows ? kPartRows : (rows + kBatchTile - 1) / kBatchTile * kBatchTile;
}

/// out = share * sum over the samples b in [lo, hi) of (d2F/dz2)(W a_b) (V a_b) a_b^T.
template <class F, class T>
BYZ_NOINLINE void hessian_product_of_part(const LinearModel<T>& model, const T* v, const SamplesAs<T>& samples,
                                          const std::int64_t* idx, index_t lo, index_t hi, T share, T* out,
                                          T* scratch) {
  const index_t K = model.outputs;
  LinearModel<T> along = model;
  along.w = v;
  T* z = line_start(scratch);
  T* u = z + kBatchTile * K;
  BatchTile<T> tile(samples, u + kBatchTile * K);
  for (index_t at = lo; at < hi && !stopping(); at += kBatchTile) {
    const index_t count = hi - at < kBatchTile ? hi - at : kBatchTile;
    const T* const* x = tile.gather(idx ? idx + at : nullptr, at, count);
    const RowsAhead<T> next(samples, idx ? idx + at + count : nullptr, std::min(hi - at - count, kBatchTile));
    outputs(x, count, model, z, next);
    outputs(x, count, along, u, RowsAhead<T>(samples, nullptr, 0));
    F::curvature(z, u, count, K);
    add_outer_products(model, x, count, share, u, out, at == lo);
  }
}

}  // namespace detail

/// All workers: out_i = (1/B) sum_b (d2F/dz2)(W_i a_b) (V_i a_b) a_b^T.  w, v, out: (m, K, stride), out distinct from
/// the others; idx: (m, B) or nullptr (every worker takes all rows, B = n).
template <class F, class T>
BYZ_NOINLINE void linear_hessian_product(const LinearModel<T>& shape, const T* w, const T* v,
                                         const SamplesAs<T>& samples, const std::int64_t* idx, index_t m, index_t B,
                                         T* out, int threads) {
  const index_t size = shape.outputs * shape.stride, rows = detail::part_rows(B), parts = (B + rows - 1) / rows;
  const index_t scratch = linear_scratch(samples, 2 * shape.outputs);
  const index_t slots = threads < m * parts ? threads : m * parts;
  const std::unique_ptr<T[]> buffer(new T[static_cast<std::size_t>(slots * scratch + m * (parts - 1) * size)]);
  T* sums = buffer.get() + slots * scratch;  // of all parts but the first, which is summed in its place
  const auto sum_of = [&](index_t i, index_t part) {
    return part == 0 ? out + i * size : sums + (i * (parts - 1) + part - 1) * size;
  };
  for_tasks(m * parts, threads, [&](index_t task, int slot) {
    const index_t i = task / parts, part = task % parts, lo = part * rows;
    LinearModel<T> model = shape;
    model.w = w + i * size;
    detail::hessian_product_of_part<F>(model, v + i * size, samples, idx ? idx + i * B : nullptr, lo,
                                       lo + rows < B ? lo + rows : B, T(1) / static_cast<T>(B), sum_of(i, part),
                                       buffer.get() + slot * scratch);
  });
  for (index_t i = 0; i < m; ++i)
    for (index_t part = 1; part < parts; ++part) {
      const T* from = sum_of(i, part);
      T* to = out + i * size;
      for (index_t j = 0; j < size; ++j) to[j] += from[j];
    }
}

}  // namespace byzadmm
