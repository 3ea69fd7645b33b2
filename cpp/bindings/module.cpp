// The native module of one instruction set: lists the areas.
#include "areas.hpp"
#include "byzadmm/simd.hpp"

#define BYZADMM_TEXT_(x) #x
#define BYZADMM_TEXT(x) BYZADMM_TEXT_(x)

PYBIND11_MODULE(BYZADMM_MODULE, m) {
  byzadmm::watch_forks();
  byzadmm::bindings::main_thread() =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  m.doc() = "byzadmm's kernels; use byzadmm.kernels and byzadmm.aggregate, which check their arguments.";
  m.attr("__version__") = BYZADMM_TEXT(BYZADMM_VERSION);
  m.attr("isa") = BYZADMM_TEXT(BYZADMM_ISA);
  m.attr("vector_bytes") = byzadmm::simd::kBytes;
#ifdef _OPENMP
  m.attr("openmp") = true;
#else
  m.attr("openmp") = false;
#endif
  m.def("max_threads", &byzadmm::max_threads, "Threads that threads=0 may use.");
  using byzadmm::bindings::Cancellation;
  py::class_<Cancellation>(m, "Cancellation", py::module_local(), "Ends the kernels of the threads inside it.")
      .def(py::init<>())
      .def("cancel", &Cancellation::cancel, "Kernels that run or start inside raise InterruptedError, in every thread.")
      .def("__enter__", [](Cancellation& c) { Cancellation::current() = &c; })
      .def("__exit__", [](Cancellation&, const py::args&) { Cancellation::current() = nullptr; });
  byzadmm::bindings::bind_rules(m);
  byzadmm::bindings::bind_median(m);
  byzadmm::bindings::bind_columns(m);
  byzadmm::bindings::bind_krum(m);
  byzadmm::bindings::bind_steps(m);
  byzadmm::bindings::bind_softmax(m);
  byzadmm::bindings::bind_philox(m);
  byzadmm::bindings::bind_simulation(m);
}
