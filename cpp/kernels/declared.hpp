// Rules that other kernels call and that take long to compile: instantiated in the files named, only declared
// elsewhere.
#pragma once

#include "byzadmm/geometric_median.hpp"
#include "byzadmm/median.hpp"

namespace byzadmm {

// coordinatewise.cpp
extern template bool median<float>(Rows<float>, Even, float*, int);
extern template bool median<double>(Rows<double>, Even, double*, int);
extern template bool trimmed_mean<float>(Rows<float>, index_t, float*, int);
extern template bool trimmed_mean<double>(Rows<double>, index_t, double*, int);
extern template bool mean<float>(Rows<float>, const double*, float*, int);
extern template bool mean<double>(Rows<double>, const double*, double*, int);
// geometric.cpp
extern template GeometricMedianInfo geometric_median<float>(Rows<float>, const double*, double, int, float*, double*,
                                                            int);
extern template GeometricMedianInfo geometric_median<double>(Rows<double>, const double*, double, int, double*, double*,
                                                             int);

}  // namespace byzadmm
