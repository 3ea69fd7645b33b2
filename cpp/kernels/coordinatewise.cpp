// Rules that treat every column by itself.
#include "byzadmm/closest.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/median.hpp"
#include "byzadmm/sign_majority.hpp"
#include "byzadmm/weighted.hpp"
#include "table.hpp"

namespace byzadmm {

template bool median<float>(Rows<float>, Even, float*, int);
template bool median<double>(Rows<double>, Even, double*, int);

template <class T>
void fill_coordinatewise(Kernels<T>& k) {
  k.mean = mean<T>;
  k.median = median<T>;
  k.trimmed_mean = trimmed_mean<T>;
  k.sign_majority = sign_majority<T>;
  k.closest_mean = closest_mean<T>;
  k.weighted_median = weighted_median<T>;
  k.weighted_trimmed_mean = weighted_trimmed_mean<T>;
  k.nonfinite_rows = nonfinite_rows<T>;
  k.mark_nan_columns = mark_nan_columns<T>;
}

template void fill_coordinatewise(Kernels<float>&);
template void fill_coordinatewise(Kernels<double>&);

}  // namespace byzadmm
