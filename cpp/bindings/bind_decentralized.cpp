// Steps of all nodes of a graph.
#include "areas.hpp"
#include "row_call.hpp"

namespace byzadmm::bindings {

namespace {

/// call(kernels of T, models (m, d), what the nodes heard, pull (m, d), thread count) with the lock released.
template <class Call>
void on_nodes(const py::array& x, const py::list& table, const py::array& index, const py::array& offset,
              const py::array& pull, int threads, Call&& call) {
  dispatch_float(x, "x", [&](auto tag) {
    using T = decltype(tag);
    require_dims(x, "x", 2);
    require_dims(index, "index", 1);
    const index_t m = x.shape(0), d = x.shape(1), links = index.shape(0);
    const T* x_ = require<T>(x, "x", {m, d});
    const index_t* at = require<index_t>(index, "index", {links});
    const index_t* first = require<index_t>(offset, "offset", {m + 1});
    double* pull_ = require_out<double>(pull, "pull", {m, d});
    std::vector<const T*> rows;
    for (const auto& row : table) rows.push_back(require<T>(as_array(row, "table"), "table", {d}));
    const auto count = static_cast<index_t>(rows.size());
    require_value(first[0] == 0 && first[m] == links, "offset", "0 to the number of links");
    for (index_t i = 0; i < m; ++i) require_value(first[i] <= first[i + 1], "offset", "ascending numbers");
    for (index_t l = 0; l < links; ++l)
      require_value(at[l] >= -1 && at[l] < count, "index", "rows of the table, or -1");
    const int team = bindings::table().resolve_threads(threads, (links + m) * d);
    const Unlocked unlocked;
    call(kernels<T>(), x_, Heard<T>{rows.data(), at, first, m, d}, pull_, team);
  });
}

}  // namespace

void bind_decentralized(py::module_& m) {
  m.def(
      "node_steps",
      [](const py::array& base, const py::array& x, const py::array& g, const py::object& pull, const py::array& alpha,
         const py::array& rho, const py::array& out, int threads) {
        dispatch_float(x, "x", [&](auto tag) {
          using T = decltype(tag);
          require_dims(x, "x", 2);
          const Shape shape = shape_of(x);
          const index_t n = shape[0], d = shape[1];
          const T *x_ = require<T>(x, "x", shape), *b_ = require<T>(base, "base", shape);
          const T* g_ = require<T>(g, "g", shape);
          const double* p_ = pull.is_none() ? nullptr : require<double>(as_array(pull, "pull"), "pull", shape);
          const double *a_ = require<double>(alpha, "alpha", {n}), *r_ = require<double>(rho, "rho", {n});
          T* to = require_out<T>(out, "out", shape);
          const int team = bindings::table().resolve_threads(threads, n * d);
          const Unlocked unlocked;
          kernels<T>().node_steps(b_, x_, g_, p_, a_, r_, to, n, d, team);
        });
      },
      "base"_a, "x"_a, "g"_a, "pull"_a, "alpha"_a, "rho"_a, "out"_a, "threads"_a,
      "Steps of all nodes along their gradients, regularizers and pulls.");
  m.def(
      "edge_dual_steps",
      [](const py::array& x, const py::list& table, const py::array& index, const py::array& offset,
         const py::object& dictated, const py::array& e, const py::array& pull, double beta, double lam, int threads) {
        const bool* said =
            dictated.is_none() ? nullptr : require<bool>(as_array(dictated, "dictated"), "dictated", {index.size()});
        void* duals = dispatch_float(x, "x", [&](auto tag) -> void* {
          require_dims(x, "x", 2);
          return require_out<decltype(tag)>(e, "e", {index.size(), x.shape(1)});
        });
        on_nodes(x, table, index, offset, pull, threads, [&](auto& k, auto* x_, auto heard, double* pull_, int team) {
          using T = std::decay_t<decltype(*x_)>;
          k.edge_dual_steps(x_, heard, said, static_cast<T>(beta), static_cast<T>(lam), static_cast<T*>(duals), pull_,
                            team);
        });
      },
      "x"_a, "table"_a, "index"_a, "offset"_a, "dictated"_a, "e"_a, "pull"_a, "beta"_a, "lam"_a, "threads"_a,
      "Duals of all links, and what pulls each node.");
  m.def(
      "sign_pulls",
      [](const py::array& x, const py::list& table, const py::array& index, const py::array& offset,
         const py::array& pull, double lam, int threads) {
        on_nodes(x, table, index, offset, pull, threads, [&](auto& k, auto* x_, auto heard, double* pull_, int team) {
          k.sign_pulls(x_, heard, lam, pull_, team);
        });
      },
      "x"_a, "table"_a, "index"_a, "offset"_a, "pull"_a, "lam"_a, "threads"_a,
      "Signs of the differences to the neighbors, summed, times lam.");
}

}  // namespace byzadmm::bindings
