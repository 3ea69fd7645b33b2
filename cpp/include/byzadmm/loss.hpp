// What a training loop asks of a loss.
#pragma once

#include "byzadmm/config.hpp"

namespace byzadmm {

/// gradient(): the worker's stochastic gradient of iteration k at a model. `slot` names the running thread's scratch,
/// which reserve() makes room for.
template <class T>
class Loss {
 public:
  virtual ~Loss() = default;
  virtual index_t workers() const = 0;
  virtual index_t dim() const = 0;
  virtual void reserve(int threads) = 0;
  virtual void gradient(index_t worker, const T* model, std::int64_t k, T* g, int slot) = 0;
};

}  // namespace byzadmm
