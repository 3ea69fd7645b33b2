// Rules that are faster with the vectors of AVX-512 than with those of AVX2, by `benchmarks/isa.py`. The others are
// not, or, as `clip`, have to measure a row as others do (`lengths`), to the bit.
#include "byzadmm/clipping.hpp"
#include "byzadmm/median.hpp"
#include "table.hpp"

namespace byzadmm {

template bool median<float>(Rows<float>, Even, float*, int);
template bool median<double>(Rows<double>, Even, double*, int);

template <class T>
void fill_wide(Kernels<T>& k) {
  k.median = median<T>;
  k.trimmed_mean = trimmed_mean<T>;
  k.centered_clip = centered_clip<T>;
}

template void fill_wide(Kernels<float>&);
template void fill_wide(Kernels<double>&);

}  // namespace byzadmm
