// Column-wise rules beside median and trimmed mean: values closest to a center, and the weighted ones.
#include "areas.hpp"
#include "byzadmm/closest.hpp"
#include "byzadmm/weighted.hpp"

namespace byzadmm::bindings {

namespace {

const double* require_weights(const py::array& weights, index_t n) {
  const double* w = require<double>(weights, "weights", {n});
  for (index_t i = 0; i < n; ++i)
    if (!(w[i] > 0)) throw py::value_error("weights: expected positive numbers");
  return w;
}

}  // namespace

void bind_columns(py::module_& m) {
  m.def(
      "closest_mean",
      [](const py::object& x, const py::array& out, const py::array& center, index_t k, const py::object& keep,
         int threads) {
        dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.d()});
          const T* middle = require<T>(center, "center", {rows.d()});
          if (k < 1 || k > rows.n()) throw py::value_error("k: expected an integer in [1, n]");
          Unlocked nogil;
          closest_mean<T>(rows.view(), middle, k, to, resolve_threads(threads, 8 * rows.n() * rows.d()));
        });
      },
      "X"_a, "out"_a, "center"_a, "k"_a, "keep"_a, "threads"_a, "Column-wise mean of the k values closest to center.");
  m.def(
      "weighted_median",
      [](const py::object& x, const py::array& out, const py::array& weights, int even, const py::object& keep,
         int threads) {
        dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.d()});
          const double* w = require_weights(weights, rows.n());
          Unlocked nogil;
          weighted_median<T>(rows.view(), w, static_cast<Even>(even), to,
                             resolve_threads(threads, 8 * rows.n() * rows.d()));
        });
      },
      "X"_a, "out"_a, "weights"_a, "even"_a, "keep"_a, "threads"_a, "Column-wise weighted median of finite rows.");
  m.def(
      "weighted_trimmed_mean",
      [](const py::object& x, const py::array& out, const py::array& weights, double cut, const py::object& keep,
         int threads) {
        dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.d()});
          const double* w = require_weights(weights, rows.n());
          Unlocked nogil;
          weighted_trimmed_mean<T>(rows.view(), w, cut, to, resolve_threads(threads, 8 * rows.n() * rows.d()));
        });
      },
      "X"_a, "out"_a, "weights"_a, "cut"_a, "keep"_a, "threads"_a,
      "Column-wise mean without the weight cut at both ends.");
}

}  // namespace byzadmm::bindings
