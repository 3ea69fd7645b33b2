// byzadmm._core: lists the areas, and takes the kernels of the instruction set that byzadmm._isa chose.
#include "areas.hpp"
#include "names.hpp"
#include "unlocked.hpp"

namespace byzadmm::bindings {

namespace {

void use(py::module_& m, const py::capsule& table) {
  const void* given = PyCapsule_GetPointer(table.ptr(), Table::kCapsule);
  if (!given) throw py::error_already_set();
  table_in_use() = static_cast<const Table*>(given);
  m.attr("isa") = bindings::table().isa;
  m.attr("vector_bytes") = bindings::table().vector_bytes;
  m.attr("openmp") = bindings::table().openmp;
}

}  // namespace

}  // namespace byzadmm::bindings

PYBIND11_MODULE(_core, m) {
  using namespace byzadmm::bindings;
  main_thread() = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  m.doc() = "byzadmm's kernels; use byzadmm.kernels and byzadmm.aggregate, which check their arguments.";
  m.attr("__version__") = BYZADMM_VERSION;
  use(m, py::module_::import("byzadmm._isa").attr("chosen").attr("table"));
  m.def(
      "use", [m](const py::capsule& table) mutable { use(m, table); }, "table"_a,
      "Take the kernels of another instruction set, for comparisons.");
  m.def("max_threads", [] { return table().max_threads(); }, "Threads that threads=0 may use.");
  m.attr("EVEN") = all_names<byzadmm::Even>();
  m.attr("ATTACKS") = all_names<byzadmm::AttackKind>();
  m.attr("PURPOSES") = all_names<byzadmm::Purpose>();
  py::class_<Cancellation>(m, "Cancellation", "Ends the kernels of the threads inside it.")
      .def(py::init<>())
      .def("cancel", &Cancellation::cancel, "Kernels that run or start inside raise InterruptedError, in every thread.")
      .def("__enter__", [](Cancellation& c) { Cancellation::current() = &c; })
      .def("__exit__", [](Cancellation&, const py::args&) { Cancellation::current() = nullptr; });
  bind_rules(m);
  bind_kernels(m);
  bind_training(m);
  bind_loops(m);
  bind_coding(m);
  bind_decentralized(m);
}
