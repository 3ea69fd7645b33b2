// Kernels that take long to compile: instantiated once, in the file named, and only declared everywhere else.
#pragma once

#include "byzadmm/geometric_median.hpp"
#include "byzadmm/median.hpp"

namespace byzadmm {

#define BYZADMM_DECLARE(T)                                                                     \
  extern template bool median<T>(Rows<T>, Even, T*, int);          /* bind_median.cpp */       \
  extern template bool trimmed_mean<T>(Rows<T>, index_t, T*, int); /* bind_median.cpp */       \
  extern template GeometricMedianInfo geometric_median<T>(Rows<T>, const double*, double, int, \
                                                          T*, /* bind_rules.cpp */             \
                                                          double*, int);
BYZADMM_DECLARE(float)
BYZADMM_DECLARE(double)
#undef BYZADMM_DECLARE

}  // namespace byzadmm
