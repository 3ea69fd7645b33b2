// The update equations of ADMM and RSA.
#include "areas.hpp"
#include "byzadmm/admm.hpp"
#include "byzadmm/rsa.hpp"

namespace byzadmm::bindings {

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
          Unlocked nogil;
          admm_worker_step<T>(x_, g_, e_, p_, static_cast<T>(alpha), to, size, resolve_threads(threads, size));
        });
      },
      "x"_a, "g"_a, "eta"_a, "eta_prev"_a, "out"_a, "alpha"_a, "threads"_a, "eqxi-update");
  m.def(
      "admm_dual_step",
      [](const py::array& eta, const py::array& x, const py::array& x0, const py::array& out, double beta, double lam,
         int threads) {
        dispatch_float(x, "x", [&](auto tag) {
          using T = decltype(tag);
          require_dims(x, "x", 2);
          const index_t n = x.shape(0), d = x.shape(1);
          const T *e_ = require<T>(eta, "eta", {n, d}), *x_ = require<T>(x, "x", {n, d});
          const T* x0_ = require<T>(x0, "x0", {d});
          T* to = require_out<T>(out, "out", {n, d});
          Unlocked nogil;
          admm_dual_step<T>(e_, x_, x0_, static_cast<T>(beta), static_cast<T>(lam), to, n, d,
                            resolve_threads(threads, n * d));
        });
      },
      "eta"_a, "x"_a, "x0"_a, "out"_a, "beta"_a, "lam"_a, "threads"_a, "eq11, eq11c");
  m.def(
      "admm_master_step",
      [](const py::array& x0, const py::array& eta, const py::array& eta_prev, const py::array& out, double alpha,
         double rho, int threads) {
        dispatch_float(eta, "eta", [&](auto tag) {
          using T = decltype(tag);
          require_dims(eta, "eta", 2);
          const index_t n = eta.shape(0), d = eta.shape(1);
          const MatrixRows<T> e_(eta, "eta"), p_(eta_prev, "eta_prev");
          require<T>(eta_prev, "eta_prev", {n, d});
          const T* x0_ = require<T>(x0, "x0", {d});
          T* to = require_out<T>(out, "out", {d});
          Unlocked nogil;
          admm_master_step<T>(x0_, e_.view(), p_.view(), alpha, rho, to, resolve_threads(threads, n * d));
        });
      },
      "x0"_a, "eta"_a, "eta_prev"_a, "out"_a, "alpha"_a, "rho"_a, "threads"_a, "eqx0-update-1");
  m.def(
      "rsa_worker_step",
      [](const py::array& x, const py::array& g, const py::array& x0, const py::array& out, double alpha, double lam,
         int threads) {
        dispatch_float(x, "x", [&](auto tag) {
          using T = decltype(tag);
          require_dims(x, "x", 2);
          const index_t n = x.shape(0), d = x.shape(1);
          const T *x_ = require<T>(x, "x", {n, d}), *g_ = require<T>(g, "g", {n, d});
          const T* x0_ = require<T>(x0, "x0", {d});
          T* to = require_out<T>(out, "out", {n, d});
          Unlocked nogil;
          rsa_worker_step<T>(x_, g_, x0_, static_cast<T>(alpha), static_cast<T>(lam), to, n, d,
                             resolve_threads(threads, n * d));
        });
      },
      "x"_a, "g"_a, "x0"_a, "out"_a, "alpha"_a, "lam"_a, "threads"_a, "eq:rsa-update, worker");
  m.def(
      "rsa_master_step",
      [](const py::array& x0, const py::array& messages, const py::array& out, double alpha, double lam, double rho,
         int threads) {
        dispatch_float(messages, "messages", [&](auto tag) {
          using T = decltype(tag);
          require_dims(messages, "messages", 2);
          const index_t n = messages.shape(0), d = messages.shape(1);
          const MatrixRows<T> m_(messages, "messages");
          const T* x0_ = require<T>(x0, "x0", {d});
          T* to = require_out<T>(out, "out", {d});
          Unlocked nogil;
          rsa_master_step<T>(x0_, m_.view(), alpha, lam, rho, to, resolve_threads(threads, n * d));
        });
      },
      "x0"_a, "messages"_a, "out"_a, "alpha"_a, "lam"_a, "rho"_a, "threads"_a, "eq:rsa-update, master");
}

}  // namespace byzadmm::bindings
