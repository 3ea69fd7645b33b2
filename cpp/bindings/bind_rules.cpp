// The robust rules over (n, d) rows, pre-aggregation, and the look at non-finite rows they share.
#include <algorithm>
#include <cmath>
#include <vector>

#include "areas.hpp"
#include "names.hpp"
#include "neighbor_sets.hpp"
#include "row_call.hpp"

namespace byzadmm::bindings {

namespace {

/// Squared distances as `squared_distances` gave them: values, with exponents where double is too narrow.
SquaredDistances squares_of(const py::array& squared, const py::object& exponent) {
  require_dims(squared, "squared", 2);
  const index_t n = squared.shape(0);
  return {require<double>(squared, "squared", {n, n}),
          exponent.is_none() ? nullptr : require<std::int32_t>(as_array(exponent, "exponent"), "exponent", {n, n}), n};
}

/// The same for rules with a minority of f rows.
SquaredDistances minority_of(const py::array& squared, const py::object& exponent, index_t f) {
  const SquaredDistances from = squares_of(squared, exponent);
  require_value(f >= 0 && 2 * f < from.n, "f", "0 <= 2f < n");
  return from;
}

void bind_coordinatewise(py::module_& m) {
  m.def(
      "mean",
      [](const py::object& x, const py::array& out, const py::object& weights, const py::object& keep, int threads) {
        return on_rows(x, keep, [&](const auto& rows) {
          const double* w = weights_of(weights, rows.n());
          auto* to = rows.into(out);
          return rows.run(threads, rows.size(), [&](auto& k, auto all, int team) { return k.mean(all, w, to, team); });
        });
      },
      "X"_a, "out"_a, "weights"_a, "keep"_a, "threads"_a, "Column-wise mean into out; True if it is not finite.");
  m.def(
      "median",
      [](const py::object& x, const py::array& out, const std::string& even, const py::object& keep, int threads) {
        return on_rows(x, keep, [&](const auto& rows) {
          const Even how = named<Even>(even, "even");
          auto* to = rows.into(out);
          return rows.run(threads, 4 * rows.size(),
                          [&](auto& k, auto all, int team) { return k.median(all, how, to, team); });
        });
      },
      "X"_a, "out"_a, "even"_a, "keep"_a, "threads"_a, "Column-wise median into out; True if a sum was not finite.");
  m.def(
      "trimmed_mean",
      [](const py::object& x, const py::array& out, index_t f, const py::object& keep, int threads) {
        return on_rows(x, keep, [&](const auto& rows) {
          require_value(f >= 0 && 2 * f < rows.n(), "f", "0 <= 2f < n");
          auto* to = rows.into(out);
          return rows.run(threads, 4 * rows.size(),
                          [&](auto& k, auto all, int team) { return k.trimmed_mean(all, f, to, team); });
        });
      },
      "X"_a, "out"_a, "f"_a, "keep"_a, "threads"_a, "Column-wise trimmed mean into out; True if a sum was not finite.");
  m.def(
      "sign_majority",
      [](const py::object& x, const py::array& out, const py::object& keep, int threads) {
        return on_rows(x, keep, [&](const auto& rows) {
          auto* to = rows.into(out);
          return rows.run(threads, rows.size(),
                          [&](auto& k, auto all, int team) { return k.sign_majority(all, to, team); });
        });
      },
      "X"_a, "out"_a, "keep"_a, "threads"_a, "Column-wise majority of signs into out; True if a number is not finite.");
  m.def(
      "closest_mean",
      [](const py::object& x, const py::array& out, const py::array& center, index_t k, const py::object& keep,
         int threads) {
        on_rows(x, keep, [&](const auto& rows) {
          require_value(k >= 1 && k <= rows.n(), "k", "an integer in [1, n]");
          auto* to = rows.into(out);
          const auto* middle = require<std::decay_t<decltype(*to)>>(center, "center", {rows.d()});
          rows.run(threads, 8 * rows.size(),
                   [&](auto& of, auto all, int team) { of.closest_mean(all, middle, k, to, team); });
        });
      },
      "X"_a, "out"_a, "center"_a, "k"_a, "keep"_a, "threads"_a, "Column-wise mean of the k values closest to center.");
  m.def(
      "weighted_median",
      [](const py::object& x, const py::array& out, const py::object& weights, const std::string& even,
         const py::object& keep, int threads) {
        on_rows(x, keep, [&](const auto& rows) {
          const double* w = positive_weights(weights, rows.n());
          const Even how = named<Even>(even, "even");
          auto* to = rows.into(out);
          rows.run(threads, 8 * rows.size(),
                   [&](auto& k, auto all, int team) { k.weighted_median(all, w, how, to, team); });
        });
      },
      "X"_a, "out"_a, "weights"_a, "even"_a, "keep"_a, "threads"_a, "Column-wise weighted median of finite rows.");
  m.def(
      "weighted_trimmed_mean",
      [](const py::object& x, const py::array& out, const py::object& weights, double cut, const py::object& keep,
         int threads) {
        on_rows(x, keep, [&](const auto& rows) {
          const double* w = positive_weights(weights, rows.n());
          auto* to = rows.into(out);
          rows.run(threads, 8 * rows.size(),
                   [&](auto& k, auto all, int team) { k.weighted_trimmed_mean(all, w, cut, to, team); });
        });
      },
      "X"_a, "out"_a, "weights"_a, "cut"_a, "keep"_a, "threads"_a,
      "Column-wise mean without the weight cut at both ends.");
  m.def(
      "nonfinite_rows",
      [](const py::object& x, int threads) {
        return on_rows(x, py::none(), [&](const auto& rows) {
          py::array_t<bool> bad(rows.n());
          bool* to = bad.mutable_data();
          rows.run(threads, rows.size(), [&](auto& k, auto all, int team) { k.nonfinite_rows(all, to, team); });
          return bad;
        });
      },
      "X"_a, "threads"_a, "Which rows hold a NaN or an infinity.");
  m.def(
      "mark_nan_columns",
      [](const py::object& x, const py::array& out, int threads) {
        on_rows(x, py::none(), [&](const auto& rows) {
          auto* to = rows.into(out);
          rows.run(threads, rows.size(), [&](auto& k, auto all, int team) { k.mark_nan_columns(all, to, team); });
        });
      },
      "X"_a, "out"_a, "threads"_a, "out_j = NaN where column j of X holds one.");
}

void bind_by_distances(py::module_& m) {
  m.def(
      "geometric_median",
      [](const py::object& x, const py::array& out, const py::object& weights, double tol, int max_iter,
         const py::object& keep, int threads) {
        return on_rows(x, keep, [&](const auto& rows) {
          const double* w = weights_of(weights, rows.n());
          auto* to = rows.into(out);
          py::array_t<double> combination(rows.n());
          double* share = combination.mutable_data();
          const GeometricMedianInfo info = rows.run(threads, 8 * rows.size(), [&](auto& k, auto all, int team) {
            return k.geometric_median(all, w, tol, max_iter, to, share, team);
          });
          return py::make_tuple(info.iterations, info.converged, info.residual, combination);
        });
      },
      "X"_a, "out"_a, "weights"_a, "tol"_a, "max_iter"_a, "keep"_a, "threads"_a,
      "Geometric median into out; (iterations, converged, residual, combination). iterations = -1: a row is not "
      "finite.");
  m.def(
      "squared_distances",
      [](const py::object& x, int threads) {
        return on_rows(x, py::none(), [&](const auto& rows) {
          const index_t n = rows.n();
          py::array_t<double> squared({n, n});
          py::array_t<bool> bad(n);
          double* to = squared.mutable_data();
          bool* said = bad.mutable_data();
          std::vector<std::int32_t> exponent;
          rows.run(threads, n * rows.size() / 8,
                   [&](auto& k, auto all, int team) { k.squared_distances(all, to, exponent, said, team); });
          py::object wide = py::none();
          if (!exponent.empty()) wide = py::array_t<std::int32_t>({n, n}, exponent.data());
          return py::make_tuple(squared, wide, bad);
        });
      },
      "X"_a, "threads"_a,
      "(squared distances, their exponents of 2 or None where float64 holds them, rows that are not finite).");
  m.def(
      "krum_scores",
      [](const py::array& squared, const py::object& exponent, index_t neighbors, const py::object& weights,
         double mass, int threads) {
        const SquaredDistances from = squares_of(squared, exponent);
        const double* w = weights_of(weights, from.n);
        py::array_t<double> score(from.n);
        py::array_t<std::int32_t> power(from.n);
        double* to = score.mutable_data();
        std::int32_t* to_power = power.mutable_data();
        const int team = table().resolve_threads(threads, 4 * from.n * from.n);
        {
          const Unlocked unlocked;
          table().krum_scores(from, neighbors, w, mass, to, to_power, team);
        }
        return py::make_tuple(score, from.exponent ? py::object(power) : py::none());
      },
      "squared"_a, "exponent"_a, "neighbors"_a, "weights"_a, "mass"_a, "threads"_a,
      "Sums of squared distances to the nearest others, with their exponents or None.");
  m.def(
      "bulyan_choice",
      [](const py::array& squared, const py::object& exponent, index_t f, index_t count) {
        const SquaredDistances from = squares_of(squared, exponent);
        require_value(f >= 0 && count >= 1 && count <= from.n, "count", "an integer in [1, n]");
        py::array_t<index_t> chosen(count);
        index_t* to = chosen.mutable_data();
        {
          const Unlocked unlocked;
          table().bulyan_choice(from, f, count, to);
        }
        return chosen;
      },
      "squared"_a, "exponent"_a, "f"_a, "count"_a, "Rows chosen one by one by their Krum score among those left.");
  m.def(
      "projections",
      [](const py::array& squared, const py::object& exponent) {
        const SquaredDistances from = squares_of(squared, exponent);
        if (from.n == 0) nothing_in("squared", "row", "none");
        py::array_t<double> score(from.n);
        double* to = score.mutable_data();
        int unit = 0;
        {
          const Unlocked unlocked;
          unit = table().projections(from, to);
        }
        return py::make_tuple(score, unit);
      },
      "squared"_a, "exponent"_a,
      "(scores, exponent of 2 of all): squared projections on the direction in which the rows differ most.");
  m.def(
      "least_diameter",
      [](const py::array& squared, const py::object& exponent, index_t f) -> py::object {
        const SquaredDistances from = minority_of(squared, exponent, f);
        py::array_t<index_t> chosen(from.n - f);
        index_t* to = chosen.mutable_data();
        bool found = false;
        {
          const Unlocked unlocked;
          found = table().least_diameter(from, f, to);
        }
        return found ? py::object(chosen) : py::none();
      },
      "squared"_a, "exponent"_a, "f"_a, "The n - f rows with the least largest distance; None if it was given up.");
  m.def(
      "least_variance",
      [](const py::array& squared, const py::object& exponent, index_t f) {
        const SquaredDistances from = minority_of(squared, exponent, f);
        py::array_t<index_t> chosen(from.n - f);
        index_t* to = chosen.mutable_data();
        {
          const Unlocked unlocked;
          table().least_variance(from, f, to);
        }
        return chosen;
      },
      "squared"_a, "exponent"_a, "f"_a, "The n - f rows whose covariance has the least largest eigenvalue.");
  m.def(
      "filtered_weights",
      [](const py::array& squared, const py::object& exponent, index_t f, double crumb) {
        const SquaredDistances from = minority_of(squared, exponent, f);
        py::array_t<double> weight(from.n);
        double* to = weight.mutable_data();
        int rounds = 0;
        {
          const Unlocked unlocked;
          rounds = table().filtered_weights(from, f, crumb, to);
        }
        return py::make_tuple(weight, rounds);
      },
      "squared"_a, "exponent"_a, "f"_a, "crumb"_a, "(weights by the covariance-bound agnostic filter, rounds).");
  m.def(
      "medoid",
      [](const py::object& x, const py::array& squared, const py::object& exponent, const py::object& weights,
         const py::object& keep, int threads) {
        return on_rows(x, keep, [&](const auto& rows) {
          const SquaredDistances from = squares_of(squared, exponent);
          const index_t n = rows.n();
          if (from.n != n) wrong_shape("squared", {n, n}, shape_of(squared));
          const double* w = weights_of(weights, n);
          py::array_t<double> score(n);
          double* to = score.mutable_data();
          const index_t best = rows.run(threads, 8 * rows.size(),
                                        [&](auto& k, auto all, int team) { return k.medoid(all, from, w, to, team); });
          return py::make_tuple(best, score);
        });
      },
      "X"_a, "squared"_a, "exponent"_a, "weights"_a, "keep"_a, "threads"_a,
      "(the kept row with the least sum of distances, all sums).");
}

void bind_clipping_and_mixing(py::module_& m) {
  m.def(
      "neighbor_means",
      [](const py::object& x, const py::array& out, const py::array& neighbor, const py::object& keep, int threads) {
        on_rows(x, keep, [&](const auto& rows) {
          require_dims(neighbor, "neighbor", 2);
          const index_t count = neighbor.shape(0), size = neighbor.shape(1);
          const index_t* index = require<index_t>(neighbor, "neighbor", {count, size});
          for (index_t s = 0; s < count * size; ++s) require_below(index[s], rows.n(), "neighbor", "indices of rows");
          auto* to = rows.into(out, count);
          require_value(size >= 1, "neighbor", "at least one row");
          rows.run(threads, count * size * rows.d() / 4, [&](auto& k, auto all, int team) {
            const NeighborSets sets(index, count, size, all.n);
            k.neighbor_means(all, sets.line.data(), sets.different, size, to, team);
            for (index_t i = count - 1; i > 0; --i)  // from the last one on, as no place is behind its row
              if (const index_t from = sets.place[static_cast<std::size_t>(i)]; from != i)
                std::copy(to + from * all.d, to + (from + 1) * all.d, to + i * all.d);
          });
        });
      },
      "X"_a, "out"_a, "neighbor"_a, "keep"_a, "threads"_a, "out_i = mean of the kept rows neighbor_i.");
  m.def(
      "centered_clip",
      [](const py::object& x, const py::array& out, double tau, int n_iter, const py::object& keep, int threads) {
        return on_rows(x, keep, [&](const auto& rows) {
          auto* to = rows.into(out);
          py::array_t<double> factor(rows.n());
          double* shares = factor.mutable_data();
          rows.run(threads, 4 * rows.size(),
                   [&](auto& k, auto all, int team) { k.centered_clip(all, tau, n_iter, to, shares, team); });
          return std::isnan(shares[0]) ? py::object(py::none()) : py::object(factor);
        });
      },
      "X"_a, "out"_a, "tau"_a, "n_iter"_a, "keep"_a, "threads"_a,
      "out holds the center and then the result; the last factors, or None: a row is not finite, out is as it was.");
  m.def(
      "lengths",
      [](const py::object& x, const py::object& center, int threads) {
        return on_rows(x, py::none(), [&](const auto& rows) {
          const auto* from = rows.center(center);
          py::array_t<double> mantissa(rows.n());
          py::array_t<std::int32_t> exponent(rows.n());
          double* to = mantissa.mutable_data();
          std::int32_t* power = exponent.mutable_data();
          rows.run(threads, rows.size(), [&](auto& k, auto all, int team) { k.lengths(all, from, to, power, team); });
          return py::make_tuple(mantissa, exponent);
        });
      },
      "X"_a, "center"_a, "threads"_a,
      "(mantissas, exponents of 2) of the distances from center, or from 0; infinite for a row that is not finite.");
  m.def(
      "clip",
      [](const py::object& x, const py::array& out, double max_norm, int exponent, const py::object& keep,
         int threads) {
        return on_rows(x, keep, [&](const auto& rows) {
          auto* to = rows.into(out, rows.n());
          py::array_t<double> norm(rows.n());
          double* lengths = norm.mutable_data();
          rows.run(threads, 2 * rows.size(),
                   [&](auto& k, auto all, int team) { k.clip(all, max_norm, exponent, to, lengths, team); });
          const bool suspect = !std::all_of(lengths, lengths + rows.n(), [](double l) { return std::isfinite(l); });
          return py::make_tuple(norm, suspect);
        });
      },
      "X"_a, "out"_a, "max_norm"_a, "exponent"_a, "keep"_a, "threads"_a,
      "Rows shortened to max_norm * 2^exponent into out; (their norms before, whether some norm is not finite).");
  m.def(
      "group_means",
      [](const py::object& x, const py::array& out, const py::array& order, index_t size, int threads) {
        return on_rows(x, py::none(), [&](const auto& rows) {
          require_dims(order, "order", 1);
          require_value(size >= 1 && order.shape(0) >= 1, "size", "groups of at least one row");
          const index_t length = order.shape(0), groups = (length + size - 1) / size;
          const index_t* index = require<index_t>(order, "order", {length});
          for (index_t s = 0; s < length; ++s) require_below(index[s], rows.n(), "order", "indices of rows");
          auto* to = rows.into(out, groups);
          return rows.run(threads, rows.d() * length, [&](auto& k, auto all, int team) {
            std::vector<index_t> group;
            auto row = std::vector<std::decay_t<decltype(*all.row)>>();
            bool suspect = false;
            for (index_t g = 0; g < groups; ++g) {
              group.assign(index + g * size, index + std::min((g + 1) * size, length));
              std::sort(group.begin(), group.end());
              row.clear();
              for (const index_t i : group) row.push_back(all.row[i]);
              suspect |= k.mean({row.data(), static_cast<index_t>(row.size()), all.d}, nullptr, to + g * all.d, team);
            }
            return suspect;
          });
        });
      },
      "X"_a, "out"_a, "order"_a, "size"_a, "threads"_a,
      "out_b = mean of the rows order[b size], ..., order[(b+1) size - 1]; True if some mean is not finite.");
}

void bind_filters(py::module_& m) {
  m.def(
      "add_to_sums",
      [](const py::object& x, const py::array& workers, double factor, const py::array& sums, index_t center,
         int threads) {
        return on_rows(x, py::none(), [&](const auto& rows) {
          require_dims(sums, "sums", 2);
          const index_t m = sums.shape(0);
          double* total = require_out<double>(sums, "sums", {m, rows.d()});
          const index_t* worker = require<index_t>(workers, "workers", {rows.n()});
          for (index_t i = 0; i < rows.n(); ++i) require_below(worker[i], m, "workers", "rows of sums");
          require_below(center, m, "center", "a row of sums");
          py::array_t<double> length(m);
          double* to = length.mutable_data();
          rows.run(threads, 4 * rows.size(), [&](auto& k, auto all, int team) {
            k.add_to_sums(all, worker, factor, total, m, center, to, team);
          });
          return length;
        });
      },
      "X"_a, "workers"_a, "factor"_a, "sums"_a, "center"_a, "threads"_a,
      "sums[workers] += factor X; the distances of all sums to sums[center].");
}

}  // namespace

void bind_rules(py::module_& m) {
  bind_coordinatewise(m);
  bind_by_distances(m);
  bind_clipping_and_mixing(m);
  bind_filters(m);
}

}  // namespace byzadmm::bindings
