// Rules that choose, clip or mix rows: Krum and its family, centered clipping, pre-aggregation.
#include "areas.hpp"
#include "byzadmm/clipping.hpp"
#include "byzadmm/distances.hpp"
#include "byzadmm/krum.hpp"
#include "byzadmm/mixing.hpp"

namespace byzadmm::bindings {

namespace {

index_t order_of(const py::array& squared) {
  require_dims(squared, "squared", 2);
  return squared.shape(0);
}

}  // namespace

void bind_krum(py::module_& m) {
  m.def(
      "squared_distances",
      [](const py::object& x, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, py::none());
          py::array_t<double> squared({rows.n(), rows.n()});
          py::array_t<bool> bad(rows.n());
          double* to = squared.mutable_data();
          bool* said = bad.mutable_data();
          int exponent = 0;
          {
            Unlocked nogil;
            exponent = squared_distances<T>(rows.view(), to, said,
                                            resolve_threads(threads, rows.n() * rows.n() * rows.d() / 8));
          }
          return py::make_tuple(squared, bad, exponent);
        });
      },
      "X"_a, "threads"_a, "(squared distances / 4**e, rows that are not finite, e).");
  m.def(
      "krum_scores",
      [](const py::array& squared, index_t neighbors, const py::object& weights, double mass, int threads) {
        const index_t n = order_of(squared);
        const double* from = require<double>(squared, "squared", {n, n});
        const double* w = nullptr;
        if (!weights.is_none()) w = require<double>(py::reinterpret_borrow<py::array>(weights), "weights", {n});
        py::array_t<double> score(n);
        double* to = score.mutable_data();
        {
          Unlocked nogil;
          const int team = resolve_threads(threads, 4 * n * n);
          if (w) krum_scores(from, w, n, mass, to, team);
          else krum_scores(from, n, neighbors, to, team);
        }
        return score;
      },
      "squared"_a, "neighbors"_a, "weights"_a, "mass"_a, "threads"_a,
      "Sum of squared distances to the nearest others.");
  m.def(
      "bulyan_choice",
      [](const py::array& squared, index_t f, index_t count) {
        const index_t n = order_of(squared);
        const double* from = require<double>(squared, "squared", {n, n});
        if (f < 0 || count < 1 || count > n) throw py::value_error("count: expected an integer in [1, n]");
        py::array_t<index_t> chosen(count);
        index_t* to = chosen.mutable_data();
        {
          Unlocked nogil;
          bulyan_choice(from, n, f, count, to);
        }
        return chosen;
      },
      "squared"_a, "f"_a, "count"_a, "Rows chosen one by one by their Krum score among those left.");
  m.def(
      "neighbor_means",
      [](const py::object& x, const py::array& out, const py::array& neighbor, const py::object& keep, int threads) {
        dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          require_dims(neighbor, "neighbor", 2);
          const index_t count = neighbor.shape(0), size = neighbor.shape(1);
          const index_t* index = require<index_t>(neighbor, "neighbor", {count, size});
          for (index_t s = 0; s < count * size; ++s)
            if (index[s] < 0 || index[s] >= rows.n()) throw py::value_error("neighbor: expected indices of rows");
          T* to = require_out<T>(out, "out", {count, rows.d()});
          Unlocked nogil;
          neighbor_means<T>(rows.view(), index, count, size, to, resolve_threads(threads, count * size * rows.d() / 4));
        });
      },
      "X"_a, "out"_a, "neighbor"_a, "keep"_a, "threads"_a, "out_i = mean of the kept rows neighbor_i.");
  m.def(
      "centered_clip",
      [](const py::object& x, const py::array& out, double tau, int n_iter, const py::object& keep, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.d()});
          py::array_t<double> factor(rows.n());
          double* shares = factor.mutable_data();
          {
            Unlocked nogil;
            centered_clip<T>(rows.view(), tau, n_iter, to, shares, resolve_threads(threads, 4 * rows.n() * rows.d()));
          }
          return factor;
        });
      },
      "X"_a, "out"_a, "tau"_a, "n_iter"_a, "keep"_a, "threads"_a,
      "out holds the center and then the result; the last factors.");
  m.def(
      "clip",
      [](const py::object& x, const py::array& out, double max_norm, const py::object& keep, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          T* to = require_out<T>(out, "out", {rows.n(), rows.d()});
          py::array_t<double> norm(rows.n());
          double* lengths = norm.mutable_data();
          {
            Unlocked nogil;
            clip<T>(rows.view(), max_norm, to, lengths, resolve_threads(threads, 2 * rows.n() * rows.d()));
          }
          return norm;
        });
      },
      "X"_a, "out"_a, "max_norm"_a, "keep"_a, "threads"_a, "Rows shortened to max_norm into out; their norms before.");
}

}  // namespace byzadmm::bindings
