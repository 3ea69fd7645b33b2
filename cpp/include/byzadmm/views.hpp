// Views over memory that somebody else owns.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "byzadmm/config.hpp"

namespace byzadmm {

/// n vectors of length d, reached through one pointer each: rows of a matrix, a subset of them, or separate arrays.
template <class T>
struct Rows {
  const T* const* row;  // (n)
  index_t n;
  index_t d;
};

/// The rows of a row-major matrix, whose neighbors are `stride` numbers apart (d if there is no gap), as the view that
/// kernels take: owns the pointers, not the numbers.
template <class T>
class MatrixRows {
 public:
  MatrixRows(const T* data, index_t n, index_t d, index_t stride) : row_(static_cast<std::size_t>(n)), d_(d) {
    for (index_t i = 0; i < n; ++i) row_[static_cast<std::size_t>(i)] = data + i * stride;
  }
  MatrixRows(const T* data, index_t n, index_t d) : MatrixRows(data, n, d, d) {}

  Rows<T> view() const { return {row_.data(), static_cast<index_t>(row_.size()), d_}; }
  operator Rows<T>() const { return view(); }  // NOLINT: median<float>(matrix_rows, ...)

 private:
  std::vector<const T*> row_;
  index_t d_;
};

/// What the m nodes of a graph heard: node i the vectors table[index[l]], l = offset[i] .. offset[i+1] - 1; an index of
/// -1 stands for nothing.
template <class T>
struct Heard {
  const T* const* table;  // of length d each
  const index_t* index;   // (links)
  const index_t* offset;  // (m + 1)
  index_t m, d;
};

/// n samples of length d, row-major. X is the storage type (uint8_t, float, double).
template <class X>
struct Samples {
  const X* data;  // (n, d)
  index_t n;
  index_t d;
};

namespace detail {
template <class T>
class PackedModel;
}

/// The same read as rows of T, whatever they are stored as (samples_as in outputs.hpp).
template <class T>
struct SamplesAs {
  const char* data;
  index_t n, d, row_bytes;
  void (*convert)(const void* row, index_t d, T* to);  // nullptr: the rows are of type T
  void (*outputs)(const detail::PackedModel<T>&, const void* const* row, index_t count, T* z);

  const void* row(index_t i) const { return data + i * row_bytes; }
};

/// Squared distances between n rows: value * 2^exponent, or the value itself where float64 is wide enough for all.
struct SquaredDistances {
  const double* value;           // (n, n)
  const std::int32_t* exponent;  // (n, n) or nullptr
  index_t n;
};

/// A model with K linear outputs (linear.hpp).
template <class T>
struct LinearModel {
  const T* w;        // (K, stride)
  index_t outputs;   // K
  index_t features;  // D
  index_t stride;    // D + 1 with a bias, D without
  T scale;
  bool has_bias() const { return stride > features; }
};

/// Everybody's samples: worker i has those with the numbers part[offset[i] .. offset[i+1]), and draws `batch` of them
/// with replacement in each iteration. A poisoned worker sees flipped_y instead of y.
template <class T, class Target>
struct SharedSamples {
  SamplesAs<T> samples;
  const Target *y, *flipped_y;        // (n) each
  const std::int64_t *part, *offset;  // offset: (workers + 1)
  const bool* poisoned;               // (workers)
  index_t workers, outputs, batch;
  double scale;
  std::uint64_t seed;
};

/// F_i(x) = 1/2 sum_j a_ij (x_j - b_ij)^2, plus N(0, noise^2) in every element of the gradient.
template <class T>
struct Quadratics {
  const T *a, *b;  // (workers, dim) each
  index_t workers, dim;
  double noise;
  std::uint64_t seed;
};

/// `count` bytes that came, which should be: a header of a fixed length that starts with `header`, then the messages of
/// workers first .. first + rows - 1.
struct Envelope {
  const char* bytes;
  index_t count;
  std::string_view header;
  index_t first, rows;
};

/// State of ADMM: x0 (d); x, eta, eta_prev (m, d), what an honest worker would hold; sent, sent_prev, u (q, d), the
/// duals that Byzantine workers sent and the models that they forged.
template <class T>
struct AdmmState {
  T *x0, *x, *eta, *eta_prev, *sent, *sent_prev, *u;
};

/// State of RSA: x0 (d); x (m, d); forged (q, d).
template <class T>
struct RsaState {
  T *x0, *x, *forged;
};

/// One direction (d) from rows, their senders and the iteration.
template <class T>
using Direction = std::function<void(Rows<T>, const std::vector<index_t>& senders, std::int64_t k, T* direction)>;

/// State of SGD: x0 (d); g (m, d), gradients at x0; momentum (m, d) or nullptr; forged (q, d).
template <class T>
struct SgdState {
  T *x0, *g, *momentum, *forged;
};

}  // namespace byzadmm
