// One function per area; each lives in bind_<area>.cpp and adds its kernels to the module.
#pragma once

#include "arrays.hpp"
#include "unlocked.hpp"

namespace byzadmm::bindings {

void bind_rules(py::module_& m);
void bind_median(py::module_& m);
void bind_columns(py::module_& m);
void bind_krum(py::module_& m);
void bind_steps(py::module_& m);
void bind_softmax(py::module_& m);
void bind_philox(py::module_& m);
void bind_simulation(py::module_& m);

}  // namespace byzadmm::bindings
