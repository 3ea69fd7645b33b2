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

void fill_selection(Table&);
void fill_training(Table&);

namespace {

template <class T>
void fill(Kernels<T>& k) {
  fill_coordinatewise(k);
  fill_geometric(k);
  fill_selection(k);
  fill_training(k);
  fill_coding(k);
  fill_decentralized(k);
}

Table& table() {
  static Table all{};
  if (!all.isa) {
    fill(std::get<Kernels<float>>(all.of));
    fill(std::get<Kernels<double>>(all.of));
    fill_selection(all);
    fill_training(all);
    all.max_threads = max_threads;
    all.resolve_threads = resolve_threads;
    all.watched = watched;
    all.in_forked_child = in_forked_child;
    all.vector_bytes = static_cast<int>(simd::kBytes);
#ifdef _OPENMP
    all.openmp = true;
#endif
    all.isa = BYZADMM_TEXT(BYZADMM_ISA);
  }
  return all;
}

/// Asked of the baseline module only, which every CPU of the architecture runs.
bool runs(const char* isa) {
  if (std::strcmp(isa, "baseline") == 0) return true;
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_cpu_init();
  if (std::strcmp(isa, "avx2") == 0) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (std::strcmp(isa, "avx512") == 0)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
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
  watch_forks();
  PyObject* capsule = PyCapsule_New(&table(), Table::kCapsule, nullptr);
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
