// The module of one instruction set: hands the table of its kernels to the bindings.
//
// Plain C API: the baseline module is the first native one imported, and pybind11 hangs in a sub-interpreter before it
// can object.
#include <Python.h>

#include <cstring>

#include "byzadmm/simd.hpp"
#include "table.hpp"

#define BYZADMM_JOIN_(a, b) a##b
#define BYZADMM_JOIN(a, b) BYZADMM_JOIN_(a, b)
#define BYZADMM_TEXT_(x) #x
#define BYZADMM_TEXT(x) BYZADMM_TEXT_(x)

namespace byzadmm {

namespace {

#ifdef BYZADMM_BESIDE
/// The table of the module that has every kernel, with those of this one in their place; false with an error of Python.
bool fill(Table& all) {
  PyObject* other = PyImport_ImportModule("byzadmm." BYZADMM_TEXT(BYZADMM_BESIDE));
  PyObject* capsule = other ? PyObject_GetAttrString(other, "table") : nullptr;
  const void* found = capsule ? PyCapsule_GetPointer(capsule, Table::kCapsule) : nullptr;
  Py_XDECREF(capsule);
  Py_XDECREF(other);  // which nothing ever unloads
  if (!found) return false;
  all = *static_cast<const Table*>(found);
  watched_there = all.watched;
  fill_wide(std::get<Kernels<float>>(all.of));
  fill_wide(std::get<Kernels<double>>(all.of));
  return true;
}
#else
template <class T>
void fill(Kernels<T>& k) {
  fill_coordinatewise(k);
  fill_geometric(k);
  fill_selection(k);
  fill_training(k);
  fill_coding(k);
  fill_decentralized(k);
}

bool fill(Table& all) {
  fill(std::get<Kernels<float>>(all.of));
  fill(std::get<Kernels<double>>(all.of));
  fill_selection(all);
  fill_training(all);
  all.max_threads = max_threads;
  all.resolve_threads = resolve_threads;
  all.watched = watched;
  all.in_forked_child = in_forked_child;
#ifdef _OPENMP
  all.openmp = true;
#endif
  watch_forks();
  return true;
}
#endif

/// nullptr with an error of Python.
Table* table() {
  static Table all{};
  if (!all.isa) {
    if (!fill(all)) return nullptr;
    all.vector_bytes = static_cast<int>(simd::kBytes);
    all.isa = BYZADMM_TEXT(BYZADMM_ISA);
  }
  return &all;
}

/// Asked of the baseline module only, which every CPU of the architecture runs.
bool runs(const char* isa) {
  if (std::strcmp(isa, "baseline") == 0) return true;
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_cpu_init();
  if (std::strcmp(isa, "avx2") == 0) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (std::strcmp(isa, "avx512") == 0)
    return runs("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  // Came with the CPUs that do not lower their clock for wide vectors.
  if (std::strcmp(isa, "avx512vbmi2") == 0) return __builtin_cpu_supports("avx512vbmi2");
#endif
  return false;
}

PyObject* supports(PyObject*, PyObject* isa) {
  const char* name = PyUnicode_AsUTF8(isa);
  return name ? PyBool_FromLong(runs(name)) : nullptr;
}

int execute(PyObject* module) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "byzadmm: expected the main interpreter, got a sub-interpreter, which is not supported");
    return -1;
  }
  Table* all = table();
  PyObject* capsule = all ? PyCapsule_New(all, Table::kCapsule, nullptr) : nullptr;
  if (!capsule) return -1;
  if (PyModule_AddObject(module, "table", capsule) == 0) return 0;
  Py_DECREF(capsule);
  return -1;
}

PyMethodDef methods[] = {{"supports", supports, METH_O, "Can code compiled for this instruction set run here?"},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute)}, {0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          BYZADMM_TEXT(BYZADMM_MODULE),
                          "The kernels of one instruction set, as a table for byzadmm._core.",
                          0,
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

}  // namespace byzadmm

PyMODINIT_FUNC BYZADMM_JOIN(PyInit_, BYZADMM_MODULE)() { return PyModuleDef_Init(&byzadmm::definition); }
