// A loss that the training loops know, as Python holds it.
#pragma once

#include <memory>
#include <vector>

#include "byzadmm/loss.hpp"
#include "errors.hpp"

namespace byzadmm::bindings {

/// A loss of either precision, with the arrays it points into.
struct NativeLoss {
  std::unique_ptr<Loss<float>> single;
  std::unique_ptr<Loss<double>> twice;
  std::vector<py::object> keep;

  template <class T>
  Loss<T>& get() const {
    if constexpr (std::is_same_v<T, float>) {
      if (!single) wrong_kind("loss", "a float32 loss", "a float64 one");
      return *single;
    } else {
      if (!twice) wrong_kind("loss", "a float64 loss", "a float32 one");
      return *twice;
    }
  }
  void put(std::unique_ptr<Loss<float>> made) { single = std::move(made); }
  void put(std::unique_ptr<Loss<double>> made) { twice = std::move(made); }
  index_t workers() const { return single ? single->workers() : twice->workers(); }
  index_t dim() const { return single ? single->dim() : twice->dim(); }
};

}  // namespace byzadmm::bindings
