// Losses of linear models for all workers at once, the update equations of ADMM, RSA and SGD, and random numbers.
#include <algorithm>
#include <array>
#include <cmath>

#include "areas.hpp"
#include "arrays.hpp"
#include "linear_losses.hpp"

namespace byzadmm::bindings {

namespace {

/// Everything a kernel of linear models needs, checked; kept alive by the caller's arguments.
struct Problem {
  index_t m, outputs, stride, features, samples, batch;
  const std::int64_t* idx = nullptr;

  template <class T>
  LinearModel<T> model(const T* w, double scale) const {
    return {w, outputs, features, stride, static_cast<T>(scale)};
  }
  index_t work() const { return m * batch * features * outputs / 4; }
};

Problem check_problem(const py::array& w, const py::array& x, const py::object& idx, bool bias) {
  require_dims(w, "W", 3);
  require_dims(x, "X", 2);
  Problem p{};
  p.m = w.shape(0);
  p.outputs = w.shape(1);
  p.stride = w.shape(2);
  p.samples = x.shape(0);
  p.features = x.shape(1);
  if (p.m == 0 || p.outputs == 0) nothing_in("W", "worker and one class", "shape " + text(shape_of(w)));
  if (p.samples == 0 || p.features == 0) nothing_in("X", "row and one column", "shape " + text(shape_of(x)));
  const Shape shape = {p.m, p.outputs, p.features + (bias ? 1 : 0)};
  if (shape_of(w) != shape) wrong_shape("W", shape, shape_of(w));
  p.batch = p.samples;
  if (!idx.is_none()) {
    const auto a = as_array(idx, "idx");
    require_dims(a, "idx", 2);
    p.batch = a.shape(1);
    p.idx = require<std::int64_t>(a, "idx", {p.m, p.batch});
    if (p.batch == 0) nothing_in("idx", "sample per worker", "none");
    for (index_t e = 0; e < p.m * p.batch; ++e) require_below(p.idx[e], p.samples, "idx", "indices");
  }
  return p;
}

/// y as targets of the batches' rows.
template <class Binding>
const typename Binding::Target* check_targets(const Problem& p, const py::array& y) {
  const auto* targets = require<typename Binding::Target>(y, "y", {p.samples});
  require_targets(targets, p.idx, p.idx ? p.m * p.batch : p.samples, Binding::labels(p.outputs));
  return targets;
}

/// call(models as T*, samples read as T)
template <class Call>
void on_samples(const py::array& w, const py::array& x, Call&& call) {
  dispatch_float(w, "W", [&](auto tag) {
    using T = decltype(tag);
    call(require<T>(w, "W", shape_of(w)), samples_of<T>(x));
  });
}

/// <name>_gradient, <name>_loss and <name>_hessian_product.
template <class Binding>
void bind_linear_loss(py::module_& m) {
  const std::string name = Binding::name;
  m.def((name + "_gradient").c_str(),
        [](const py::array& w, const py::array& x, const py::array& y, const py::object& idx, const py::array& out,
           double scale, bool bias, int threads) {
          const Problem p = check_problem(w, x, idx, bias);
          const auto* targets = check_targets<Binding>(p, y);
          on_samples(w, x, [&](const auto* models, const auto& samples) {
            using T = std::decay_t<decltype(*models)>;
            T* to = require_out<T>(out, "out", shape_of(w));
            const int team = table().resolve_threads(threads, p.work());
            const Unlocked unlocked;
            Binding::of(kernels<T>())
                .gradient(p.model(models, scale), models, samples, targets, p.idx, p.m, p.batch, to, team);
          });
        },
        "W"_a, "X"_a, "y"_a, "idx"_a, "out"_a, "scale"_a, "bias"_a, "threads"_a,
        "Mini-batch gradients of all workers.");
  m.def((name + "_loss").c_str(),
        [](const py::array& w, const py::array& x, const py::array& y, const py::object& idx, double scale, bool bias,
           int threads) {
          const Problem p = check_problem(w, x, idx, bias);
          const auto* targets = check_targets<Binding>(p, y);
          py::array_t<double> result(p.m);
          double* to = result.mutable_data();
          on_samples(w, x, [&](const auto* models, const auto& samples) {
            using T = std::decay_t<decltype(*models)>;
            const int team = table().resolve_threads(threads, p.work() / p.m);
            const Unlocked unlocked;
            for (index_t i = 0; i < p.m; ++i)
              to[i] = Binding::of(kernels<T>())
                          .loss(p.model(models + i * p.outputs * p.stride, scale), samples, targets,
                                p.idx ? p.idx + i * p.batch : nullptr, p.batch, team);
          });
          return result;
        },
        "W"_a, "X"_a, "y"_a, "idx"_a, "scale"_a, "bias"_a, "threads"_a, "Mean loss of every worker.");
  m.def((name + "_hessian_product").c_str(),
        [](const py::array& w, const py::array& v, const py::array& x, const py::object& idx, const py::array& out,
           double scale, bool bias, int threads) {
          const Problem p = check_problem(w, x, idx, bias);
          Binding::labels(p.outputs);
          on_samples(w, x, [&](const auto* models, const auto& samples) {
            using T = std::decay_t<decltype(*models)>;
            const T* along = require<T>(v, "V", shape_of(w));
            T* to = require_out<T>(out, "out", shape_of(w));
            const int team = table().resolve_threads(threads, 2 * p.work());
            const Unlocked unlocked;
            Binding::of(kernels<T>())
                .hessian_product(p.model(models, scale), models, along, samples, p.idx, p.m, p.batch, to, team);
          });
        },
        "W"_a, "V"_a, "X"_a, "idx"_a, "out"_a, "scale"_a, "bias"_a, "threads"_a,
        "Hessian of every worker's mean loss times a vector.");
}

/// What the kernel of(table) says of every row by one model: R, or the type of the model.
template <class R, class Of>
void bind_predictions(py::module_& m, const char* name, const char* about, Of of) {
  m.def(
      name,
      [of](const py::array& w, const py::array& x, const py::array& out, double scale, bool bias, int threads) {
        const Problem p = check_problem(w, x, py::none(), bias);
        if (p.m != 1) wrong_shape("W", {1, p.outputs, p.stride}, shape_of(w));
        on_samples(w, x, [&](const auto* models, const auto& samples) {
          using T = std::decay_t<decltype(*models)>;
          auto* to = require_out<std::conditional_t<std::is_void_v<R>, T, R>>(out, "out", {p.samples});
          const int team = table().resolve_threads(threads, p.work());
          const Unlocked unlocked;
          of(kernels<T>())(p.model(models, scale), samples, to, team);
        });
      },
      "W"_a, "X"_a, "out"_a, "scale"_a, "bias"_a, "threads"_a, about);
}

void bind_linear(py::module_& m) {
  bind_linear_loss<SoftmaxBinding>(m);
  bind_linear_loss<LogisticBinding>(m);
  bind_linear_loss<LeastSquaresBinding>(m);
  bind_predictions<std::int64_t>(m, "softmax_predict", "Class of every row.",
                                 [](const auto& k) { return k.softmax_predict; });
  bind_predictions<void>(m, "linear_predict", "Output for every row of a model with one.",
                         [](const auto& k) { return k.linear_predict; });
}

struct Named {
  const char* name;
  const py::array& array;
};

/// call(kernels, a, b, x0, out, n, d, thread count): what n workers compute from two rows of their own and x0.
template <class Call>
void on_workers(const Named& a, const Named& b, const py::array& x0, const py::array& out, int threads, Call&& call) {
  dispatch_float(a.array, a.name, [&](auto tag) {
    using T = decltype(tag);
    require_dims(a.array, a.name, 2);
    const index_t n = a.array.shape(0), d = a.array.shape(1);
    const T *a_ = require<T>(a.array, a.name, {n, d}), *b_ = require<T>(b.array, b.name, {n, d});
    const T* x0_ = require<T>(x0, "x0", {d});
    T* to = require_out<T>(out, "out", {n, d});
    const int team = table().resolve_threads(threads, n * d);
    const Unlocked unlocked;
    call(kernels<T>(), a_, b_, x0_, to, n, d, team);
  });
}

void bind_steps(py::module_& m) {
  m.def(
      "admm_worker_step",
      [](const py::array& x, const py::array& g, const py::array& eta, const py::array& eta_prev, const py::array& out,
         double alpha, int threads) {
        dispatch_float(x, "x", [&](auto tag) {
          using T = decltype(tag);
          const Shape shape = shape_of(x);
          const T *x_ = require<T>(x, "x", shape), *g_ = require<T>(g, "g", shape);
          const T *e_ = require<T>(eta, "eta", shape), *p_ = require<T>(eta_prev, "eta_prev", shape);
          T* to = require_out<T>(out, "out", shape);
          const index_t size = x.size();
          const int team = table().resolve_threads(threads, size);
          const Unlocked unlocked;
          kernels<T>().admm_worker_step(x_, g_, e_, p_, static_cast<T>(alpha), to, size, team);
        });
      },
      "x"_a, "g"_a, "eta"_a, "eta_prev"_a, "out"_a, "alpha"_a, "threads"_a, "eqxi-update");
  m.def(
      "admm_dual_step",
      [](const py::array& eta, const py::array& x, const py::array& x0, const py::array& out, double beta, double lam,
         int threads) {
        on_workers({"x", x}, {"eta", eta}, x0, out, threads,
                   [&](auto& k, auto* x_, auto* e_, auto* x0_, auto* to, index_t n, index_t d, int team) {
                     using T = std::decay_t<decltype(*to)>;
                     k.admm_dual_step(e_, x_, x0_, static_cast<T>(beta), static_cast<T>(lam), to, n, d, team);
                   });
      },
      "eta"_a, "x"_a, "x0"_a, "out"_a, "beta"_a, "lam"_a, "threads"_a, "eq11, eq11c");
  m.def(
      "admm_answer",
      [](const py::array& x, const py::array& g, const py::array& eta, const py::array& eta_prev, const py::array& x0,
         double alpha, double beta, double lam, int threads) {
        dispatch_float(x, "x", [&](auto tag) {
          using T = decltype(tag);
          require_dims(x, "x", 2);
          const index_t m = x.shape(0), d = x.shape(1);
          T *x_ = require_out<T>(x, "x", {m, d}), *g_ = require_out<T>(g, "g", {m, d});
          T *e_ = require_out<T>(eta, "eta", {m, d}), *p_ = require_out<T>(eta_prev, "eta_prev", {m, d});
          const T* x0_ = require<T>(x0, "x0", {d});
          const int team = table().resolve_threads(threads, m * d);
          const Unlocked unlocked;
          kernels<T>().admm_answer(x_, g_, e_, p_, x0_, static_cast<T>(alpha), static_cast<T>(beta),
                                   static_cast<T>(lam), m, d, team);
        });
      },
      "x"_a, "g"_a, "eta"_a, "eta_prev"_a, "x0"_a, "alpha"_a, "beta"_a, "lam"_a, "threads"_a,
      "eqxi-update and eq11 in place; g becomes the message");
  m.def(
      "admm_master_step",
      [](const py::array& x0, const py::array& eta, const py::array& eta_prev, const py::array& out, double alpha,
         double rho, int threads) {
        dispatch_float(eta, "eta", [&](auto tag) {
          using T = decltype(tag);
          const auto e_ = matrix_rows<T>(eta, "eta"), p_ = matrix_rows<T>(eta_prev, "eta_prev");
          const index_t n = eta.shape(0), d = eta.shape(1);
          require<T>(eta_prev, "eta_prev", {n, d});
          const T* x0_ = require<T>(x0, "x0", {d});
          T* to = require_out<T>(out, "out", {d});
          const int team = table().resolve_threads(threads, n * d);
          const Unlocked unlocked;
          kernels<T>().admm_master_step(x0_, e_.view(), p_.view(), alpha, rho, to, team);
        });
      },
      "x0"_a, "eta"_a, "eta_prev"_a, "out"_a, "alpha"_a, "rho"_a, "threads"_a, "eqx0-update-1");
  m.def(
      "admm_hear",
      [](const py::array& message, const py::array& eta, const py::array& eta_prev, const py::array& total,
         const py::array& change) {
        dispatch_float(message, "message", [&](auto tag) {
          using T = decltype(tag);
          const Shape shape = shape_of(message);
          const T* sent = require<T>(message, "message", shape);
          T *now = require_out<T>(eta, "eta", shape), *before = require_out<T>(eta_prev, "eta_prev", shape);
          double* sum = require_out<double>(total, "total", shape);
          double* step = require_out<double>(change, "change", shape);
          const Unlocked unlocked;
          kernels<T>().admm_hear(sent, now, before, sum, step, message.size());
        });
      },
      "message"_a, "eta"_a, "eta_prev"_a, "total"_a, "change"_a, "A dual that the master hears between two updates.");
  m.def(
      "admm_master_step_of_sums",
      [](const py::array& x0, const py::array& total, const py::array& change, double alpha, double rho) {
        dispatch_float(x0, "x0", [&](auto tag) {
          using T = decltype(tag);
          const Shape shape = shape_of(x0);
          T* to = require_out<T>(x0, "x0", shape);
          const double* sum = require<double>(total, "total", shape);
          double* step = require_out<double>(change, "change", shape);
          const Unlocked unlocked;
          kernels<T>().admm_master_step_of_sums(to, sum, step, alpha, rho, x0.size());
        });
      },
      "x0"_a, "total"_a, "change"_a, "alpha"_a, "rho"_a, "eqx0-update-1 from the sums of admm_hear");
  m.def(
      "rsa_worker_step",
      [](const py::array& x, const py::array& g, const py::array& x0, const py::array& out, double alpha, double lam,
         int threads) {
        on_workers({"x", x}, {"g", g}, x0, out, threads,
                   [&](auto& k, auto* x_, auto* g_, auto* x0_, auto* to, index_t n, index_t d, int team) {
                     using T = std::decay_t<decltype(*to)>;
                     k.rsa_worker_step(x_, g_, x0_, static_cast<T>(alpha), static_cast<T>(lam), to, n, d, team);
                   });
      },
      "x"_a, "g"_a, "x0"_a, "out"_a, "alpha"_a, "lam"_a, "threads"_a, "eq:rsa-update, worker");
  m.def(
      "rsa_master_step",
      [](const py::array& x0, const py::array& messages, const py::array& out, double alpha, double lam, double rho,
         int threads) {
        dispatch_float(messages, "messages", [&](auto tag) {
          using T = decltype(tag);
          const auto sent = matrix_rows<T>(messages, "messages");
          const index_t d = messages.shape(1);
          const T* x0_ = require<T>(x0, "x0", {d});
          T* to = require_out<T>(out, "out", {d});
          const int team = table().resolve_threads(threads, messages.size());
          const Unlocked unlocked;
          kernels<T>().rsa_master_step(x0_, sent.view(), alpha, lam, rho, to, team);
        });
      },
      "x0"_a, "messages"_a, "out"_a, "alpha"_a, "lam"_a, "rho"_a, "threads"_a, "eq:rsa-update, master");
  m.def(
      "sgd_step",
      [](const py::array& x0, const py::array& direction, const py::array& out, double alpha, double rho, int threads) {
        dispatch_float(x0, "x0", [&](auto tag) {
          using T = decltype(tag);
          const Shape shape = shape_of(x0);
          const T *x_ = require<T>(x0, "x0", shape), *g_ = require<T>(direction, "direction", shape);
          T* to = require_out<T>(out, "out", shape);
          const index_t d = x0.size();
          const int team = table().resolve_threads(threads, d);
          const Unlocked unlocked;
          kernels<T>().sgd_step(x_, g_, static_cast<T>(alpha), static_cast<T>(rho), to, d, team);
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
          const int team = table().resolve_threads(threads, size);
          const Unlocked unlocked;
          kernels<T>().momentum_step(to, g_, static_cast<T>(beta), size, team);
        });
      },
      "momentum"_a, "g"_a, "beta"_a, "threads"_a, "momentum <- beta momentum + (1 - beta) g, in place");
}

void bind_arrivals(py::module_& m) {
  m.def(
      "distance",
      [](const py::array& x, const py::array& y, bool take) {
        return dispatch_float(x, "x", [&](auto tag) {
          using T = decltype(tag);
          const Shape shape = shape_of(x);
          const T *a = require<T>(x, "x", shape), *b = require<T>(y, "y", shape);
          T* to = take ? require_out<T>(y, "y", shape) : nullptr;
          const index_t d = x.size();
          double mantissa = 0;
          std::int32_t exponent = 0;
          const Unlocked unlocked;
          kernels<T>().lengths({&a, 1, d}, b, &mantissa, &exponent, 1);
          if (to) std::copy(a, a + d, to);
          return std::ldexp(mantissa, exponent);
        });
      },
      "x"_a, "y"_a, "take"_a = false, "||x - y||, infinite beyond float64; then y becomes x, if it is to take it.");
  m.def(
      "add_to_mean",
      [](const py::array& mean, const py::array& message, index_t n) {
        dispatch_float(mean, "mean", [&](auto tag) {
          using T = decltype(tag);
          T* to = require_out<T>(mean, "mean", shape_of(mean));
          const T* sent = require<T>(message, "message", shape_of(mean));
          require_value(n >= 1, "n", "at least 1");
          const Unlocked unlocked;
          kernels<T>().add_to_mean(to, sent, n, mean.size());
        });
      },
      "mean"_a, "message"_a, "n"_a, "The n-th message into a mean, in place; it stays finite.");
  m.def(
      "zeno_direction",
      [](const py::array& message, const py::array& own, const py::array& out, double alpha, double rho, double eps) {
        return dispatch_float(message, "message", [&](auto tag) {
          using T = decltype(tag);
          const Shape shape = shape_of(message);
          const T* sent = require<T>(message, "message", shape);
          const double* v = require<double>(own, "own", shape);
          T* to = require_out<T>(out, "out", shape);
          const Unlocked unlocked;
          return kernels<T>().zeno_direction(sent, v, alpha, rho, eps, to, message.size());
        });
      },
      "message"_a, "own"_a, "out"_a, "alpha"_a, "rho"_a, "eps"_a,
      "The message at the length of own, if Zeno++ accepts it; whether it does.");
}

void bind_philox(py::module_& m) {
  using Words = std::array<std::uint64_t, 3>;
  m.def(
      "philox_normal",
      [](const py::array& out, double std, std::uint64_t seed, const Words& words) {
        dispatch_float(out, "out", [&](auto tag) {
          using T = decltype(tag);
          T* to = require_out<T>(out, "out", shape_of(out));
          const index_t size = out.size();
          const Unlocked unlocked;
          kernels<T>().philox_normal({seed, words[0], words[1], words[2]}, static_cast<T>(std), to, size);
        });
      },
      "out"_a, "std"_a, "seed"_a, "stream"_a, "Normal draws of one stream into out.");
  m.def(
      "philox_integers",
      [](const py::array& out, std::uint64_t high, std::uint64_t seed, const Words& words) {
        std::int64_t* to = require_out<std::int64_t>(out, "out", shape_of(out));
        const index_t size = out.size();
        const Unlocked unlocked;
        table().philox_integers({seed, words[0], words[1], words[2]}, high, to, size);
      },
      "out"_a, "high"_a, "seed"_a, "stream"_a, "Integers in [0, high) of one stream into out.");
}

}  // namespace

void bind_kernels(py::module_& m) {
  bind_linear(m);
  bind_steps(m);
  bind_arrivals(m);
  bind_philox(m);
}

}  // namespace byzadmm::bindings
