// median and trimmed_mean, apart from the other rules: their unrolled networks take the compiler longest.
#include "areas.hpp"
#include "instances.hpp"

namespace byzadmm {

template bool median<float>(Rows<float>, Even, float*, int);
template bool median<double>(Rows<double>, Even, double*, int);
template bool trimmed_mean<float>(Rows<float>, index_t, float*, int);
template bool trimmed_mean<double>(Rows<double>, index_t, double*, int);

}  // namespace byzadmm

namespace byzadmm::bindings {

void bind_median(py::module_& m) {
  m.def(
      "median",
      [](const py::object& x, const py::array& out, int even, const py::object& keep, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.d()});
          Unlocked nogil;
          return median<T>(rows.view(), static_cast<Even>(even), to, resolve_threads(threads, 4 * rows.n() * rows.d()));
        });
      },
      "X"_a, "out"_a, "even"_a, "keep"_a, "threads"_a, "Column-wise median into out; True if a sum was not finite.");
  m.def(
      "trimmed_mean",
      [](const py::object& x, const py::array& out, index_t f, const py::object& keep, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.d()});
          if (f < 0 || 2 * f >= rows.n()) throw py::value_error("f: expected 0 <= 2f < n");
          Unlocked nogil;
          return trimmed_mean<T>(rows.view(), f, to, resolve_threads(threads, 4 * rows.n() * rows.d()));
        });
      },
      "X"_a, "out"_a, "f"_a, "keep"_a, "threads"_a, "Column-wise trimmed mean into out; True if a sum was not finite.");
}

}  // namespace byzadmm::bindings
