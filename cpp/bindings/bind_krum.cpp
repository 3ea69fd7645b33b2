// Rules that choose, clip or mix rows: Krum and its family, centered clipping, pre-aggregation.
#include "areas.hpp"
#include "byzadmm/clipping.hpp"
#include "byzadmm/distances.hpp"
#include "byzadmm/krum.hpp"
#include "byzadmm/medoid.hpp"
#include "byzadmm/mixing.hpp"

namespace byzadmm::bindings {

namespace {

/// Squared distances as `squared_distances` gave them: values, with exponents where double is too narrow.
struct Squares {
  Squares(const py::array& squared, const py::object& exponents) {
    require_dims(squared, "squared", 2);
    n = squared.shape(0);
    value = require<double>(squared, "squared", {n, n});
    if (!exponents.is_none()) exponent = require<std::int32_t>(as_array(exponents, "exponent"), "exponent", {n, n});
  }

  /// f(pointer to n * n numbers), of double or of Wide.
  template <class F>
  void visit(F&& f) const {
    if (!exponent) return f(value);
    const auto size = static_cast<std::size_t>(n * n);
    std::vector<Wide> wide(size);
    for (std::size_t e = 0; e < size; ++e) wide[e] = Wide(value[e], exponent[e]);
    f(static_cast<const Wide*>(wide.data()));
  }

  index_t n;
  const double* value;
  const std::int32_t* exponent = nullptr;
};

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
          std::vector<std::int32_t> exponent;
          {
            Unlocked nogil;
            squared_distances<T>(rows.view(), to, exponent, said,
                                 resolve_threads(threads, rows.n() * rows.n() * rows.d() / 8));
          }
          py::object wide = py::none();
          if (!exponent.empty()) wide = py::array_t<std::int32_t>({rows.n(), rows.n()}, exponent.data());
          return py::make_tuple(squared, wide, bad);
        });
      },
      "X"_a, "threads"_a,
      "(squared distances, their exponents of 2 or None where float64 holds them, rows that are not finite).");
  m.def(
      "krum_scores",
      [](const py::array& squared, const py::object& exponent, index_t neighbors, const py::object& weights,
         double mass, int threads) {
        const Squares squares(squared, exponent);
        const index_t n = squares.n;
        const double* w = nullptr;
        if (!weights.is_none()) w = require<double>(as_array(weights, "weights"), "weights", {n});
        py::array_t<double> value(n);
        py::array_t<std::int32_t> power(n);
        double* to = value.mutable_data();
        std::int32_t* to_power = power.mutable_data();
        {
          Unlocked nogil;
          const int team = resolve_threads(threads, 4 * n * n);
          squares.visit([&](const auto* from) {
            using N = std::decay_t<decltype(*from)>;
            std::vector<N> score(static_cast<std::size_t>(n));
            if (w) krum_scores(from, w, n, mass, score.data(), team);
            else krum_scores(from, n, neighbors, score.data(), team);
            for (const N number : score) {
              const Wide split = number;
              *to++ = squares.exponent ? split.mantissa : static_cast<double>(number);
              *to_power++ = split.exponent;
            }
          });
        }
        return py::make_tuple(value, squares.exponent ? py::object(power) : py::none());
      },
      "squared"_a, "exponent"_a, "neighbors"_a, "weights"_a, "mass"_a, "threads"_a,
      "Sums of squared distances to the nearest others, with their exponents or None.");
  m.def(
      "bulyan_choice",
      [](const py::array& squared, const py::object& exponent, index_t f, index_t count) {
        const Squares squares(squared, exponent);
        if (f < 0 || count < 1 || count > squares.n) throw py::value_error("count: expected an integer in [1, n]");
        py::array_t<index_t> chosen(count);
        index_t* to = chosen.mutable_data();
        {
          Unlocked nogil;
          squares.visit([&](const auto* from) { bulyan_choice(from, squares.n, f, count, to); });
        }
        return chosen;
      },
      "squared"_a, "exponent"_a, "f"_a, "count"_a, "Rows chosen one by one by their Krum score among those left.");
  m.def(
      "medoid",
      [](const py::object& x, const py::array& squared, const py::object& exponent, const py::object& weights,
         const py::object& keep, int threads) {
        return dispatch_float(first_array(x), "X", [&](auto tag) {
          using T = decltype(tag);
          const RowList<T> rows(x, keep);
          const Squares squares(squared, exponent);
          const index_t n = rows.n();
          if (squares.n != n) require<double>(squared, "squared", {n, n});
          const double* w = nullptr;
          if (!weights.is_none()) w = require<double>(as_array(weights, "weights"), "weights", {n});
          py::array_t<double> score(n);
          double* to = score.mutable_data();
          index_t best = 0;
          {
            Unlocked nogil;
            const int team = resolve_threads(threads, 8 * n * rows.d());
            squares.visit([&](const auto* from) { best = medoid(rows.view(), from, w, to, team); });
          }
          return py::make_tuple(best, score);
        });
      },
      "X"_a, "squared"_a, "exponent"_a, "weights"_a, "keep"_a, "threads"_a,
      "(the kept row with the least sum of distances, all sums).");
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
