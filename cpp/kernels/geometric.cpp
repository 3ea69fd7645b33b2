// The geometric median, by itself: it takes the compiler as long as all other rules together.
#include "byzadmm/apply_rule.hpp"
#include "byzadmm/geometric_median.hpp"
#include "table.hpp"

namespace byzadmm {

template void apply_rule<float>(const Rule&, Rows<float>, index_t, float*, int);
template void apply_rule<double>(const Rule&, Rows<double>, index_t, double*, int);

template <class T>
void fill_geometric(Kernels<T>& k) {
  k.geometric_median = geometric_median<T>;
}

template void fill_geometric(Kernels<float>&);
template void fill_geometric(Kernels<double>&);

}  // namespace byzadmm
