// The losses of linear models by name: where their kernels are in the table, and which labels they take.
#pragma once

#include "arrays.hpp"

namespace byzadmm::bindings {

struct SoftmaxBinding {
  using Target = std::int64_t;
  static constexpr const char* name = "softmax";
  static index_t labels(index_t outputs) { return outputs; }
  template <class K>
  static const auto& of(const K& kernels) {
    return kernels.softmax;
  }
};

/// Only one output makes sense for the next two.
inline index_t require_one(index_t outputs) {
  require_value(outputs == 1, "W", "one output per worker");
  return 2;
}

struct LogisticBinding {
  using Target = std::int64_t;
  static constexpr const char* name = "logistic";
  static index_t labels(index_t outputs) { return require_one(outputs); }
  template <class K>
  static const auto& of(const K& kernels) {
    return kernels.logistic;
  }
};

struct LeastSquaresBinding {
  using Target = double;
  static constexpr const char* name = "least_squares";
  static index_t labels(index_t outputs) { return require_one(outputs); }
  template <class K>
  static const auto& of(const K& kernels) {
    return kernels.least_squares;
  }
};

/// Labels of the rows idx[0..count), or 0..count-1, are in [0, labels); real targets may be any numbers.
template <class Target>
void require_targets(const Target* y, const std::int64_t* idx, index_t count, index_t labels) {
  if constexpr (std::is_same_v<Target, std::int64_t>)
    for (index_t e = 0; e < count; ++e) {
      const index_t row = idx ? static_cast<index_t>(idx[e]) : e;
      require_label(y[row], labels, row);
    }
}

}  // namespace byzadmm::bindings
