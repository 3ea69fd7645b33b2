// Losses, attacks and the fused training loops. State lives in NumPy arrays that the caller owns.
#include "areas.hpp"
#include "byzadmm/simulation.hpp"
#include "instances.hpp"

namespace byzadmm::bindings {

namespace {

/// A loss of either precision, with the arrays it points into.
struct NativeLoss {
  std::unique_ptr<Loss<float>> single;
  std::unique_ptr<Loss<double>> twice;
  std::vector<py::object> keep;

  template <class T>
  Loss<T>& get() const {
    if constexpr (std::is_same_v<T, float>) {
      if (!single) throw py::type_error("loss: expected a float32 loss, got a float64 one");
      return *single;
    } else {
      if (!twice) throw py::type_error("loss: expected a float64 loss, got a float32 one");
      return *twice;
    }
  }
  index_t workers() const { return single ? single->workers() : twice->workers(); }
  index_t dim() const { return single ? single->dim() : twice->dim(); }
};

template <class T>
void put(NativeLoss& loss, std::unique_ptr<Loss<T>> made) {
  if constexpr (std::is_same_v<T, float>) loss.single = std::move(made);
  else loss.twice = std::move(made);
}

NativeLoss make_softmax(const py::array& x, const py::array& y, const py::array& flipped, const py::array& part,
                        const py::array& offset, const py::array& poisoned, index_t classes, double scale,
                        index_t batch, std::uint64_t seed, bool single) {
  require_dims(x, "X", 2);
  require_dims(offset, "offset", 1);
  const index_t n = x.shape(0), m = offset.shape(0) - 1;
  const auto* y_ = require<std::int64_t>(y, "y", {n});
  const auto* f_ = require<std::int64_t>(flipped, "flipped", {n});
  const auto* p_ = require<std::int64_t>(part, "part", shape_of(part));
  const auto* o_ = require<std::int64_t>(offset, "offset", {m + 1});
  const bool* bad = require<bool>(poisoned, "poisoned", {m});
  if (m < 1 || batch < 1 || classes < 1)
    throw py::value_error("softmax: expected at least one worker, sample and class");
  if (o_[0] != 0 || o_[m] != part.size()) throw py::value_error("offset: expected to cover part");
  for (index_t i = 0; i < m; ++i)
    if (o_[i + 1] <= o_[i]) throw py::value_error("offset: expected at least one sample per worker");
  for (index_t e = 0; e < part.size(); ++e)
    if (p_[e] < 0 || p_[e] >= n) throw py::value_error("part: expected indices in [0, " + std::to_string(n) + ")");
  for (index_t e = 0; e < n; ++e)
    if (y_[e] < 0 || y_[e] >= classes || f_[e] < 0 || f_[e] >= classes)
      throw py::value_error("y: expected labels in [0, " + std::to_string(classes) + ")");
  NativeLoss loss;
  loss.keep = {x, y, flipped, part, offset, poisoned};
  dispatch_feature(x, "X", [&](auto feature) {
    using X = decltype(feature);
    const Samples<X> samples{require<X>(x, "X", shape_of(x)), n, x.shape(1)};
    const auto make = [&](auto tag) {
      using T = decltype(tag);
      put<T>(loss, std::make_unique<SoftmaxLoss<T, X>>(samples, y_, f_, p_, o_, bad, m, classes, scale, batch, seed));
    };
    if (single) make(float{});
    else make(double{});
  });
  return loss;
}

NativeLoss make_quadratic(const py::array& a, const py::array& b, double noise, std::uint64_t seed) {
  require_dims(a, "a", 2);
  NativeLoss loss;
  loss.keep = {a, b};
  dispatch_float(a, "a", [&](auto tag) {
    using T = decltype(tag);
    const T *a_ = require<T>(a, "a", shape_of(a)), *b_ = require<T>(b, "b", shape_of(a));
    put<T>(loss, std::make_unique<QuadraticLoss<T>>(a_, b_, a.shape(0), a.shape(1), noise, seed));
  });
  return loss;
}

/// Gradients of the workers `workers` at their models (n, d), or at one model (d).
void gradients(NativeLoss& loss, const py::array& models, const std::vector<index_t>& workers, std::int64_t k,
               const py::array& out, int threads) {
  dispatch_float(out, "out", [&](auto tag) {
    using T = decltype(tag);
    Loss<T>& of = loss.get<T>();
    const auto n = static_cast<index_t>(workers.size());
    const index_t d = of.dim();
    const bool shared = models.ndim() == 1;
    const T* w = shared ? require<T>(models, "models", {d}) : require<T>(models, "models", {n, d});
    T* to = require_out<T>(out, "out", {n, d});
    for (const index_t i : workers)
      if (i < 0 || i >= of.workers()) throw py::value_error("workers: expected numbers in [0, m)");
    const int team = resolve_threads(threads, n * d * 32);
    Unlocked nogil;
    of.reserve(team);
    for_tasks(n, team, [&](index_t i, int slot) {
      of.gradient(workers[static_cast<std::size_t>(i)], shared ? w : w + i * d, k, to + i * d, slot);
    });
  });
}

Attack attack_of(const std::tuple<int, double, index_t>& spec, index_t m) {
  const Attack attack{static_cast<AttackKind>(std::get<0>(spec)), std::get<1>(spec), std::get<2>(spec)};
  if (attack.worker < 0 || attack.worker >= m) throw py::value_error("attack: expected a worker in [0, m)");
  return attack;
}

template <class T>
Cast<T> cast_of(const NativeLoss& loss, const std::vector<index_t>& byzantine,
                const std::tuple<int, double, index_t>& attack, std::uint64_t seed, const py::array& eliminated,
                int threads) {
  const index_t m = loss.workers(), d = loss.dim();
  for (const index_t j : byzantine)
    if (j < 0 || j >= m) throw py::value_error("byzantine: expected numbers in [0, m)");
  return {m,
          d,
          byzantine,
          attack_of(attack, m),
          seed,
          require_out<std::int64_t>(eliminated, "eliminated", {m}),
          resolve_threads(threads, m * d * 32)};
}

const double* steps_of(const py::array& a, const char* name, index_t count) {
  return require<double>(a, name, {count});
}

}  // namespace

void bind_simulation(py::module_& m) {
  py::class_<NativeLoss>(m, "Loss", py::module_local(), "Where workers' gradients come from.")
      .def_static("softmax", &make_softmax, "X"_a, "y"_a, "flipped"_a, "part"_a, "offset"_a, "poisoned"_a, "classes"_a,
                  "scale"_a, "batch"_a, "seed"_a, "single"_a)
      .def_static("quadratic", &make_quadratic, "a"_a, "b"_a, "noise"_a, "seed"_a)
      .def_property_readonly("workers", &NativeLoss::workers)
      .def_property_readonly("dim", &NativeLoss::dim)
      .def("gradients", &gradients, "models"_a, "workers"_a, "k"_a, "out"_a, "threads"_a);

  m.def(
      "attack_messages",
      [](const std::tuple<int, double, index_t>& attack, const py::array& honest, const std::vector<index_t>& byzantine,
         const py::array& x0, std::int64_t k, std::uint64_t seed, const py::array& out, int threads) {
        dispatch_float(honest, "honest", [&](auto tag) {
          using T = decltype(tag);
          const MatrixRows<T> all(honest, "honest");
          const index_t n = honest.shape(0), d = honest.shape(1), q = static_cast<index_t>(byzantine.size());
          std::vector<char> lies(static_cast<std::size_t>(n));
          for (const index_t j : byzantine) {
            if (j < 0 || j >= n) throw py::value_error("byzantine: expected numbers in [0, m)");
            lies[static_cast<std::size_t>(j)] = 1;
          }
          std::vector<const T*> regular;
          for (index_t i = 0; i < n; ++i)
            if (!lies[static_cast<std::size_t>(i)]) regular.push_back(all.view().row[i]);
          const T* x0_ = require<T>(x0, "x0", {d});
          T* to = require_out<T>(out, "out", {q, d});
          const Attack spec = attack_of(attack, n);
          Unlocked nogil;
          attack_messages<T>(spec, all.view(), {regular.data(), static_cast<index_t>(regular.size()), d},
                             byzantine.data(), q, x0_, k, seed, to, resolve_threads(threads, q * d * 8));
        });
      },
      "attack"_a, "honest"_a, "byzantine"_a, "x0"_a, "k"_a, "seed"_a, "out"_a, "threads"_a,
      "Messages of the Byzantine workers.");

  m.def(
      "acceptable",
      [](const py::array& messages, double bound) {
        return dispatch_float(messages, "messages", [&](auto tag) {
          using T = decltype(tag);
          const MatrixRows<T> rows(messages, "messages");
          const Rows<T> all = rows.view();
          const T limit = bound > 0 ? static_cast<T>(bound) : std::numeric_limits<T>::max();
          std::vector<bool> said(static_cast<std::size_t>(all.n));
          Unlocked nogil;
          for_tasks(all.n, 1, [&](index_t i, int) {
            said[static_cast<std::size_t>(i)] = acceptable<T>(all.row[i], all.d, limit);
          });
          return said;
        });
      },
      "messages"_a, "bound"_a, "Which messages the master accepts: finite, and within [-bound, bound] if bound > 0.");

  m.def(
      "take_messages",
      [](const std::vector<std::tuple<py::array, index_t, py::bytes, index_t, index_t>>& envelopes,
         index_t header_bytes, double bound, const py::array& out, const py::array& present, const py::array& good) {
        const index_t m = out.shape(0);
        bool* came = require_out<bool>(present, "present", {m});
        bool* fine = require_out<bool>(good, "good", {m});
        return dispatch_float(out, "out", [&](auto tag) {
          using T = decltype(tag);
          require_dims(out, "out", 2);
          const index_t d = out.shape(1);
          T* to = require_out<T>(out, "out", shape_of(out));
          const T limit = bound > 0 ? static_cast<T>(bound) : std::numeric_limits<T>::max();
          struct Message {
            const T* from;
            index_t row;
          };
          std::vector<bool> taken;
          std::vector<Message> messages;
          for (const auto& [buffer, count, header, first, rows] : envelopes) {
            const auto begins = static_cast<std::string_view>(header);
            const auto* bytes = static_cast<const char*>(buffer.data());
            const bool fits = buffer.ndim() == 1 && buffer.itemsize() == 1 && count <= buffer.size() && first >= 0 &&
                              rows >= 0 && first + rows <= m && static_cast<index_t>(begins.size()) <= header_bytes &&
                              count == header_bytes + rows * d * static_cast<index_t>(sizeof(T)) &&
                              reinterpret_cast<std::uintptr_t>(bytes + header_bytes) % alignof(T) == 0 &&
                              std::memcmp(bytes, begins.data(), begins.size()) == 0;
            taken.push_back(fits);
            for (index_t i = 0; fits && i < rows; ++i)
              messages.push_back({reinterpret_cast<const T*>(bytes + header_bytes) + i * d, first + i});
          }
          Unlocked nogil;
          for_tasks(static_cast<index_t>(messages.size()), 1, [&](index_t i, int) {
            const auto [from, row] = messages[static_cast<std::size_t>(i)];
            fine[row] = copy_acceptable<T>(from, d, limit, to + row * d);
            came[row] = true;
          });
          return taken;
        });
      },
      "envelopes"_a, "header_bytes"_a, "bound"_a, "out"_a, "present"_a, "good"_a,
      "Envelopes (buffer, bytes that came, header it must have, first row, rows): the numbers of those that are "
      "exactly\n"
      "this go to their rows of out, which become present, and good if acceptable. Which ones were.");

  m.def(
      "sgd_step",
      [](const py::array& x0, const py::array& direction, const py::array& out, double alpha, double rho, int threads) {
        dispatch_float(x0, "x0", [&](auto tag) {
          using T = decltype(tag);
          const Shape shape = shape_of(x0);
          const T *x_ = require<T>(x0, "x0", shape), *g_ = require<T>(direction, "direction", shape);
          T* to = require_out<T>(out, "out", shape);
          const index_t d = x0.size();
          Unlocked nogil;
          sgd_step<T>(x_, g_, static_cast<T>(alpha), static_cast<T>(rho), to, d, resolve_threads(threads, d));
        });
      },
      "x0"_a, "direction"_a, "out"_a, "alpha"_a, "rho"_a, "threads"_a, "x0 - alpha (direction + rho x0)");

  m.def(
      "momentum_step",
      [](const py::array& momentum, const py::array& g, double beta, int threads) {
        dispatch_float(momentum, "momentum", [&](auto tag) {
          using T = decltype(tag);
          const Shape shape = shape_of(momentum);
          T* to = require_out<T>(momentum, "momentum", shape);
          const T* g_ = require<T>(g, "g", shape);
          const index_t size = momentum.size();
          Unlocked nogil;
          momentum_step<T>(to, g_, static_cast<T>(beta), size, resolve_threads(threads, size));
        });
      },
      "momentum"_a, "g"_a, "beta"_a, "threads"_a, "momentum <- beta momentum + (1 - beta) g, in place");

  m.def(
      "run_admm",
      [](NativeLoss& loss, const py::dict& state, double lam, double beta, double rho, const py::array& alpha0,
         const py::array& alpha, std::int64_t first, const std::vector<index_t>& byzantine,
         const std::tuple<int, double, index_t>& attack, std::uint64_t seed, int threads) {
        const auto x0 = state["x0"].cast<py::array>();
        dispatch_float(x0, "x0", [&](auto tag) {
          using T = decltype(tag);
          const auto cast = cast_of<T>(loss, byzantine, attack, seed, state["eliminated"].cast<py::array>(), threads);
          const auto get = [&](const char* name, const Shape& shape) {
            return require_out<T>(state[name].cast<py::array>(), name, shape);
          };
          const Shape all = {cast.m, cast.d}, lies = {cast.q(), cast.d};
          const AdmmState<T> s{get("x0", {cast.d}), get("x", all),          get("eta", all),  get("eta_prev", all),
                               get("sent", lies),   get("sent_prev", lies), get("lies", lies)};
          const index_t count = alpha.size();
          const double *a0 = steps_of(alpha0, "alpha0", count), *a = steps_of(alpha, "alpha", count);
          Loss<T>& of = loss.get<T>();
          Unlocked nogil;
          run_admm<T>(of, s, {lam, beta, rho}, cast, a0, a, first, count);
        });
      },
      "loss"_a, "state"_a, "lam"_a, "beta"_a, "rho"_a, "alpha0"_a, "alpha"_a, "first"_a, "byzantine"_a, "attack"_a,
      "seed"_a, "threads"_a, "Iterations of stochastic ADMM; updates the arrays of state.");

  m.def(
      "run_rsa",
      [](NativeLoss& loss, const py::dict& state, double lam, double rho, const py::array& alpha0,
         const py::array& alpha, std::int64_t first, const std::vector<index_t>& byzantine,
         const std::tuple<int, double, index_t>& attack, std::uint64_t seed, int threads) {
        const auto x0 = state["x0"].cast<py::array>();
        dispatch_float(x0, "x0", [&](auto tag) {
          using T = decltype(tag);
          const auto cast = cast_of<T>(loss, byzantine, attack, seed, state["eliminated"].cast<py::array>(), threads);
          const auto get = [&](const char* name, const Shape& shape) {
            return require_out<T>(state[name].cast<py::array>(), name, shape);
          };
          std::vector<T> next(static_cast<std::size_t>(cast.d));
          const RsaState<T> s{get("x0", {cast.d}), get("x", {cast.m, cast.d}), get("lies", {cast.q(), cast.d}),
                              next.data()};
          const index_t count = alpha.size();
          const double *a0 = steps_of(alpha0, "alpha0", count), *a = steps_of(alpha, "alpha", count);
          Loss<T>& of = loss.get<T>();
          Unlocked nogil;
          run_rsa<T>(of, s, lam, rho, cast, a0, a, first, count);
        });
      },
      "loss"_a, "state"_a, "lam"_a, "rho"_a, "alpha0"_a, "alpha"_a, "first"_a, "byzantine"_a, "attack"_a, "seed"_a,
      "threads"_a, "Iterations of RSA; updates the arrays of state.");

  m.def(
      "run_sgd",
      [](NativeLoss& loss, const py::dict& state, const std::tuple<int, index_t, double, int>& rule, double rho,
         double momentum, bool ideal, const py::array& alpha, std::int64_t first, const std::vector<index_t>& byzantine,
         const std::tuple<int, double, index_t>& attack, std::uint64_t seed, int threads) {
        const auto x0 = state["x0"].cast<py::array>();
        dispatch_float(x0, "x0", [&](auto tag) {
          using T = decltype(tag);
          const auto cast = cast_of<T>(loss, byzantine, attack, seed, state["eliminated"].cast<py::array>(), threads);
          const auto get = [&](const char* name, const Shape& shape) {
            return require_out<T>(state[name].cast<py::array>(), name, shape);
          };
          std::vector<T> direction(static_cast<std::size_t>(cast.d));
          const Shape all = {cast.m, cast.d};
          const SgdState<T> s{get("x0", {cast.d}), get("g", all), momentum != 0 ? get("momentum", all) : nullptr,
                              get("lies", {cast.q(), cast.d}), direction.data()};
          const RuleSpec spec{static_cast<Rule>(std::get<0>(rule)), std::get<1>(rule), std::get<2>(rule),
                              std::get<3>(rule)};
          const index_t count = alpha.size();
          const double* a = steps_of(alpha, "alpha", count);
          Loss<T>& of = loss.get<T>();
          Unlocked nogil;
          run_sgd<T>(of, s, spec, rho, momentum, ideal, cast, a, first, count);
        });
      },
      "loss"_a, "state"_a, "rule"_a, "rho"_a, "momentum"_a, "ideal"_a, "alpha"_a, "first"_a, "byzantine"_a, "attack"_a,
      "seed"_a, "threads"_a, "Iterations of SGD with a robust rule; updates the arrays of state.");
}

}  // namespace byzadmm::bindings
