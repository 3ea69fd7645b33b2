// Rules that are faster with the vectors of AVX-512 than with those of AVX2, by `benchmarks/isa.py`. The others are
// not, or, as `clip`, have to measure a row as others do (`lengths`), to the bit.
#include "byzadmm/clipping.hpp"
#include "byzadmm/coding.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/median.hpp"
#include "table.hpp"

namespace byzadmm {

template bool median<float>(Rows<float>, Even, float*, int);
template bool median<double>(Rows<double>, Even, double*, int);

template <class T>
void fill_wide_rules(Kernels<T>& k) {
  k.mean = mean<T>;
  k.median = median<T>;
  k.trimmed_mean = trimmed_mean<T>;
  k.centered_clip = centered_clip<T>;
  k.look_at_rows = look_at_rows<T>;
}

template void fill_wide_rules(Kernels<float>&);
template void fill_wide_rules(Kernels<double>&);

}  // namespace byzadmm
