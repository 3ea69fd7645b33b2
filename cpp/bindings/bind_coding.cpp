// Redundant gradients: sums of rows, the look at coded rows, the vote of equal ones.
#include "areas.hpp"
#include "row_call.hpp"

namespace byzadmm::bindings {

void bind_coding(py::module_& m) {
  m.def(
      "weighted_sum",
      [](const py::object& x, const py::array& out, const py::array& weights, double total, int threads) {
        on_rows(x, py::none(), [&](const auto& rows) {
          const double* w = require<double>(weights, "weights", {rows.n()});
          auto* to = rows.into(out);
          rows.run(threads, rows.size(), [&](auto& k, auto all, int team) { k.weighted_sum(all, w, total, to, team); });
        });
      },
      "X"_a, "out"_a, "weights"_a, "total"_a, "threads"_a,
      "Sum of the rows times their weights, over total, into out.");
  m.def(
      "look_at_rows",
      [](const py::object& x, const py::array& inner, const py::array& outer, double scale, int threads) {
        return on_rows(x, py::none(), [&](const auto& rows) {
          require_value(rows.d() % 2 == 0, "X", "rows of an even length");
          require_dims(inner, "inner", 1);
          const index_t tile = inner.shape(0);
          require_value(tile >= 1, "inner", "at least one number");
          const double* a = require<double>(inner, "inner", {tile});
          const double* b = require<double>(outer, "outer", {(rows.d() / 2 + tile - 1) / tile});
          py::array_t<double> found(Shape{rows.n(), 4});
          double* to = found.mutable_data();
          rows.run(threads, rows.size(),
                   [&](auto& k, auto all, int team) { k.look_at_rows(all, a, tile, b, scale, to, team); });
          return found;
        });
      },
      "X"_a, "inner"_a, "outer"_a, "scale"_a, "threads"_a,
      "Of complex rows times scale: product with outer x inner (two numbers), sum of squares, largest element; (n, "
      "4).");
  m.def(
      "majority_rows",
      [](const py::object& x, const py::array& first, index_t votes, int threads) {
        return on_rows(x, py::none(), [&](const auto& rows) {
          require_dims(first, "first", 1);
          require_value(first.shape(0) >= 1, "first", "at least one number");
          const index_t groups = first.shape(0) - 1;
          const index_t* at = require<index_t>(first, "first", {groups + 1});
          require_value(at[0] == 0 && at[groups] == rows.n(), "first", "0 to n");
          for (index_t g = 0; g < groups; ++g) require_value(at[g] <= at[g + 1], "first", "ascending numbers");
          py::array_t<index_t> chosen(groups);
          index_t* to = chosen.mutable_data();
          rows.run(threads, rows.size(),
                   [&](auto& k, auto all, int team) { k.majority_rows(all, at, groups, votes, to, team); });
          return chosen;
        });
      },
      "X"_a, "first"_a, "votes"_a, "threads"_a, "A row that votes rows of its group equal, for every group; or -1.");
}

}  // namespace byzadmm::bindings
