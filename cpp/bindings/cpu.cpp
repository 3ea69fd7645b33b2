// What this CPU can run; built without any instruction-set flag, so that it runs everywhere.
//
// Plain C API: this module is the first one imported, and pybind11 hangs in a sub-interpreter before it can object.
#include <Python.h>

#include <cstring>

namespace {

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

int refuse_subinterpreters(PyObject*) {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
  PyErr_SetString(PyExc_ImportError,
                  "byzadmm: expected the main interpreter, got a sub-interpreter, which is not supported");
  return -1;
}

PyMethodDef methods[] = {{"supports", supports, METH_O, "Can code compiled for this instruction set run here?"},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(refuse_subinterpreters)}, {0, nullptr}};
PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_cpu", "Instruction sets of this CPU.", 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModuleDef_Init(&module); }
