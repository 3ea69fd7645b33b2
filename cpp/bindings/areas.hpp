// One function per area; each lives in bind_<area>.cpp and adds its functions to the module.
#pragma once

#include "pybind.hpp"

namespace byzadmm::bindings {

void bind_rules(py::module_& m);
void bind_kernels(py::module_& m);
void bind_training(py::module_& m);
void bind_loops(py::module_& m);
void bind_coding(py::module_& m);
void bind_decentralized(py::module_& m);

}  // namespace byzadmm::bindings
