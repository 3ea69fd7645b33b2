// The geometric median, by itself: it takes the compiler as long as all other rules together.
#include "byzadmm/geometric_median.hpp"
#include "table.hpp"

namespace byzadmm {

extern template bool median<float>(Rows<float>, Even, float*, int);  // coordinatewise.cpp
extern template bool median<double>(Rows<double>, Even, double*, int);
template GeometricMedianInfo geometric_median<float>(Rows<float>, const double*, double, int, float*, double*, int);
template GeometricMedianInfo geometric_median<double>(Rows<double>, const double*, double, int, double*, double*, int);

template <class T>
void fill_geometric(Kernels<T>& k) {
  k.geometric_median = geometric_median<T>;
}

template void fill_geometric(Kernels<float>&);
template void fill_geometric(Kernels<double>&);

}  // namespace byzadmm
