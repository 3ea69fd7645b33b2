// The robust rules over (n, d) rows, and the look at non-finite rows they share.
#include "areas.hpp"
#include "byzadmm/mean.hpp"
#include "instances.hpp"

namespace byzadmm {

template GeometricMedianInfo geometric_median<float>(Rows<float>, const double*, double, int, float*, double*, int);
template GeometricMedianInfo geometric_median<double>(Rows<double>, const double*, double, int, double*, double*, int);

}  // namespace byzadmm

namespace byzadmm::bindings {

namespace {

const double* optional_weights(const py::object& weights, index_t n) {
  if (weights.is_none()) return nullptr;
  return require<double>(as_array(weights, "weights"), "weights", {n});
}

}  // namespace

void bind_rules(py::module_& m) {
  m.def(
      "mean",
      [](const py::object& x, const py::array& out, const py::object& weights, const py::object& keep, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.d()});
          const double* w = optional_weights(weights, rows.n());
          Unlocked nogil;
          return mean<T>(rows.view(), w, to, resolve_threads(threads, rows.n() * rows.d()));
        });
      },
      "X"_a, "out"_a, "weights"_a, "keep"_a, "threads"_a, "Column-wise mean into out; True if it is not finite.");
  m.def(
      "geometric_median",
      [](const py::object& x, const py::array& out, const py::object& weights, double tol, int max_iter,
         const py::object& keep, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.d()});
          const double* w = optional_weights(weights, rows.n());
          py::array_t<double> combination(rows.n());
          double* share = combination.mutable_data();
          GeometricMedianInfo info;
          {
            Unlocked nogil;
            info = geometric_median<T>(rows.view(), w, tol, max_iter, to, share,
                                       resolve_threads(threads, 8 * rows.n() * rows.d()));
          }
          return py::make_tuple(info.iterations, info.converged, info.residual, combination);
        });
      },
      "X"_a, "out"_a, "weights"_a, "tol"_a, "max_iter"_a, "keep"_a, "threads"_a,
      "Geometric median into out; (iterations, converged, residual, combination). iterations = -1: a row is not "
      "finite.");
  m.def(
      "nonfinite_rows",
      [](const py::object& x, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, py::none());
          py::array_t<bool> bad(rows.n());
          bool* to = bad.mutable_data();
          {
            Unlocked nogil;
            nonfinite_rows<T>(rows.view(), to, resolve_threads(threads, rows.n() * rows.d()));
          }
          return bad;
        });
      },
      "X"_a, "threads"_a, "Which rows hold a NaN or an infinity.");
  m.def(
      "mark_nan_columns",
      [](const py::object& x, const py::array& out, int threads) {
        dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, py::none());
          T* to = require_out<T>(out, "out", {rows.d()});
          Unlocked nogil;
          mark_nan_columns<T>(rows.view(), to, resolve_threads(threads, rows.n() * rows.d()));
        });
      },
      "X"_a, "out"_a, "threads"_a, "out_j = NaN where column j of X holds one.");
}

}  // namespace byzadmm::bindings
