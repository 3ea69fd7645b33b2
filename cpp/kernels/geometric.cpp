// The geometric median, by itself: it takes the compiler as long as all other rules together.
#include "byzadmm/geometric_median.hpp"
#include "table.hpp"

namespace byzadmm {

template <class T>
void fill_geometric(Kernels<T>& k) {
  k.geometric_median = geometric_median<T>;
}

template void fill_geometric(Kernels<float>&);
template void fill_geometric(Kernels<double>&);

}  // namespace byzadmm
