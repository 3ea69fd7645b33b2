// Redundant gradients: encoding and decoding.
#include "byzadmm/coding.hpp"

#include "table.hpp"

namespace byzadmm {

template <class T>
void fill_coding(Kernels<T>& k) {
  k.weighted_sum = weighted_sum<T>;
  k.look_at_rows = look_at_rows<T>;
  k.majority_rows = majority_rows<T>;
}

template void fill_coding(Kernels<float>&);
template void fill_coding(Kernels<double>&);

}  // namespace byzadmm
