// What this CPU can run; built without any instruction-set flag, so that it runs everywhere.
#include "pybind.hpp"

PYBIND11_MODULE(_cpu, m) {
  m.doc() = "Instruction sets of this CPU.";
  m.def(
      "supports",
      [](const std::string& isa) {
        if (isa == "baseline") return true;
#if defined(__x86_64__) || defined(_M_X64)
        __builtin_cpu_init();
        if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        if (isa == "avx512")
          return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
        return false;
      },
      "isa"_a, "Can code compiled for this instruction set run here?");
}
