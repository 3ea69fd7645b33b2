// Steps of all nodes of a graph.
#include "areas.hpp"
#include "row_call.hpp"

namespace byzadmm::bindings {

namespace {

/// call(kernels of T, models (m, d), what the nodes heard, out (m, d), thread count) with the lock released. `out` is
/// of type Out, or of that of the models for void.
template <class Out, class Call>
void on_nodes(const py::array& x, const py::list& table, const py::array& index, const py::array& offset,
              const py::array& out, const char* name, int threads, Call&& call) {
  dispatch_float(x, "x", [&](auto tag) {
    using T = decltype(tag);
    require_dims(x, "x", 2);
    require_dims(index, "index", 1);
    const index_t m = x.shape(0), d = x.shape(1), links = index.shape(0);
    const T* x_ = require<T>(x, "x", {m, d});
    const index_t* at = require<index_t>(index, "index", {links});
    const index_t* first = require<index_t>(offset, "offset", {m + 1});
    using O = std::conditional_t<std::is_void_v<Out>, T, Out>;
    O* to = require_out<O>(out, name, {m, d});
    std::vector<const T*> rows;
    for (const auto& row : table) rows.push_back(require<T>(as_array(row, "table"), "table", {d}));
    const auto count = static_cast<index_t>(rows.size());
    require_value(first[0] == 0 && first[m] == links, "offset", "0 to the number of links");
    for (index_t i = 0; i < m; ++i) require_value(first[i] <= first[i + 1], "offset", "ascending numbers");
    for (index_t l = 0; l < links; ++l)
      require_value(at[l] >= -1 && at[l] < count, "index", "rows of the table, or -1");
    const int team = bindings::table().resolve_threads(threads, (links + m) * d);
    const Unlocked unlocked;
    call(kernels<T>(), x_, Heard<T>{rows.data(), at, first, m, d}, to, team);
  });
}

/// Rows to exclude at each node, (m): `each` times f_i at most what it heard, or less where all may not go; any number
/// where `each` is 0.
inline const index_t* excluded(const py::array& f, const py::array& index, const py::array& offset, index_t each) {
  require_dims(index, "index", 1);
  require_dims(offset, "offset", 1);
  const index_t m = offset.size() - 1, links = index.size();
  require_value(m >= 1, "offset", "at least two numbers");
  const index_t *b = require<index_t>(f, "f", {m}), *at = require<index_t>(index, "index", {links});
  const index_t* first = require<index_t>(offset, "offset", {m + 1});
  for (index_t i = 0; i < m; ++i) {
    require_value(first[i] >= 0 && first[i] <= first[i + 1] && first[i + 1] <= links, "offset", "ascending numbers");
    index_t heard = 0;
    for (index_t l = first[i]; l < first[i + 1]; ++l) heard += at[l] >= 0;
    require_value(each == 0 || b[i] < 0 || (each == 1 ? b[i] <= heard : 2 * b[i] < heard), "f",
                  "fewer than were heard");
  }
  return b;
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
        on_nodes<double>(x, table, index, offset, pull, "pull", threads,
                         [&](auto& k, auto* x_, auto heard, double* pull_, int team) {
                           using T = std::decay_t<decltype(*x_)>;
                           k.edge_dual_steps(x_, heard, said, static_cast<T>(beta), static_cast<T>(lam),
                                             static_cast<T*>(duals), pull_, team);
                         });
      },
      "x"_a, "table"_a, "index"_a, "offset"_a, "dictated"_a, "e"_a, "pull"_a, "beta"_a, "lam"_a, "threads"_a,
      "Duals of all links, and what pulls each node.");
  m.def(
      "sign_pulls",
      [](const py::array& x, const py::list& table, const py::array& index, const py::array& offset,
         const py::array& pull, double lam, int threads) {
        on_nodes<double>(
            x, table, index, offset, pull, "pull", threads,
            [&](auto& k, auto* x_, auto heard, double* pull_, int team) { k.sign_pulls(x_, heard, lam, pull_, team); });
      },
      "x"_a, "table"_a, "index"_a, "offset"_a, "pull"_a, "lam"_a, "threads"_a,
      "Signs of the differences to the neighbors, summed, times lam.");
  m.def(
      "scissor_neighbors",
      [](const py::array& own, const py::list& table, const py::array& index, const py::array& offset,
         const py::array& weights, const py::array& own_weights, const py::array& f, const py::array& out,
         int threads) {
        const double* w = require<double>(weights, "weights", {index.size()});
        const double* o = require<double>(own_weights, "own_weights", {offset.size() - 1});
        const index_t* b = excluded(f, index, offset, 1);
        on_nodes<void>(own, table, index, offset, out, "out", threads,
                       [&](auto& k, auto* own_, auto heard, auto* to, int team) {
                         k.scissor_neighbors(own_, heard, w, o, b, to, team);
                       });
      },
      "own"_a, "table"_a, "index"_a, "offset"_a, "weights"_a, "own_weights"_a, "f"_a, "out"_a, "threads"_a,
      "IOS at every node; gossip where f is 0, the own row where it is negative.");
  m.def(
      "trim_neighbors",
      [](const py::array& own, const py::list& table, const py::array& index, const py::array& offset,
         const py::array& f, const py::array& out, int threads) {
        const index_t* b = excluded(f, index, offset, 2);
        on_nodes<void>(
            own, table, index, offset, out, "out", threads,
            [&](auto& k, auto* own_, auto heard, auto* to, int team) { k.trim_neighbors(own_, heard, b, to, team); });
      },
      "own"_a, "table"_a, "index"_a, "offset"_a, "f"_a, "out"_a, "threads"_a,
      "BRIDGE-T at every node; the own row where f is negative.");
  m.def(
      "subsequence_neighbors",
      [](const py::array& own, const py::list& table, const py::array& index, const py::array& offset,
         const py::array& f, const py::array& out, int threads) {
        const index_t* b = excluded(f, index, offset, 0);
        on_nodes<void>(own, table, index, offset, out, "out", threads,
                       [&](auto& k, auto* own_, auto heard, auto* to, int team) {
                         k.subsequence_neighbors(own_, heard, b, to, team);
                       });
      },
      "own"_a, "table"_a, "index"_a, "offset"_a, "f"_a, "out"_a, "threads"_a,
      "W-MSR at every node; the own row where f is negative.");
}

}  // namespace byzadmm::bindings
