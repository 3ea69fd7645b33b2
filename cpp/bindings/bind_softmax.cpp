// Softmax regression for all workers at once.
#include "areas.hpp"
#include "byzadmm/softmax.hpp"

namespace byzadmm::bindings {

namespace {

/// Everything a softmax kernel needs, checked; kept alive by the caller's arguments.
struct Problem {
  index_t m, classes, stride, features, samples, batch;
  const std::int64_t* y = nullptr;
  const std::int64_t* idx = nullptr;
};

/// Labels and indices are checked before anything is written: out of range would read or write out of bounds.
void check_label(std::int64_t label, index_t classes, index_t row) {
  if (label < 0 || label >= classes)
    throw py::value_error("y: expected labels in [0, " + std::to_string(classes) + "), got " + std::to_string(label) +
                          " at row " + std::to_string(row));
}

Problem check_problem(const py::array& w, const py::array& x, const py::object& y, const py::object& idx, bool bias) {
  require_dims(w, "W", 3);
  require_dims(x, "X", 2);
  Problem p{};
  p.m = w.shape(0);
  p.classes = w.shape(1);
  p.stride = w.shape(2);
  p.samples = x.shape(0);
  p.features = x.shape(1);
  if (p.m == 0 || p.classes == 0)
    throw py::value_error("W: expected at least one worker and one class, got shape " + text(shape_of(w)));
  if (p.samples == 0 || p.features == 0)
    throw py::value_error("X: expected at least one row and one column, got shape " + text(shape_of(x)));
  const Shape expected = {p.m, p.classes, p.features + (bias ? 1 : 0)};
  if (shape_of(w) != expected)
    throw py::value_error("W: expected shape " + text(expected) + ", got " + text(shape_of(w)));
  p.batch = p.samples;
  if (!y.is_none()) p.y = require<std::int64_t>(as_array(y, "y"), "y", {p.samples});
  if (!idx.is_none()) {
    const auto a = as_array(idx, "idx");
    require_dims(a, "idx", 2);
    p.batch = a.shape(1);
    p.idx = require<std::int64_t>(a, "idx", {p.m, p.batch});
    if (p.batch == 0) throw py::value_error("idx: expected at least one sample per worker, got none");
    for (index_t e = 0; e < p.m * p.batch; ++e) {
      if (p.idx[e] < 0 || p.idx[e] >= p.samples)
        throw py::value_error("idx: expected indices in [0, " + std::to_string(p.samples) + "), got " +
                              std::to_string(p.idx[e]));
      if (p.y) check_label(p.y[p.idx[e]], p.classes, static_cast<index_t>(p.idx[e]));
    }
  } else if (p.y) {
    for (index_t e = 0; e < p.samples; ++e) check_label(p.y[e], p.classes, e);
  }
  return p;
}

template <class T>
SoftmaxModel<T> model_of(const Problem& p, const T* w, double scale) {
  return {w, p.classes, p.features, p.stride, static_cast<T>(scale)};
}

index_t work(const Problem& p) { return p.m * p.batch * p.features * p.classes / 4; }

}  // namespace

void bind_softmax(py::module_& m) {
  m.def(
      "softmax_gradient",
      [](const py::array& w, const py::array& x, const py::array& y, const py::object& idx, const py::array& out,
         double scale, bool bias, int threads) {
        const Problem p = check_problem(w, x, y, idx, bias);
        dispatch_float(w, "W", [&](auto tag) {
          using T = decltype(tag);
          const T* w_ = require<T>(w, "W", shape_of(w));
          T* to = require_out<T>(out, "out", shape_of(w));
          dispatch_feature(x, "X", [&](auto feature) {
            using X = decltype(feature);
            const Samples<X> samples{require<X>(x, "X", shape_of(x)), p.samples, p.features};
            Unlocked nogil;
            softmax_gradient<T, X>(model_of(p, w_, scale), w_, samples, p.y, p.idx, p.m, p.batch, to,
                                   resolve_threads(threads, work(p)));
          });
        });
      },
      "W"_a, "X"_a, "y"_a, "idx"_a, "out"_a, "scale"_a, "bias"_a, "threads"_a, "Mini-batch gradients of all workers.");
  m.def(
      "softmax_loss",
      [](const py::array& w, const py::array& x, const py::array& y, const py::object& idx, double scale, bool bias,
         int threads) {
        const Problem p = check_problem(w, x, y, idx, bias);
        py::array_t<double> result(p.m);
        double* to = result.mutable_data();
        dispatch_float(w, "W", [&](auto tag) {
          using T = decltype(tag);
          const T* w_ = require<T>(w, "W", shape_of(w));
          dispatch_feature(x, "X", [&](auto feature) {
            using X = decltype(feature);
            const Samples<X> samples{require<X>(x, "X", shape_of(x)), p.samples, p.features};
            Unlocked nogil;
            for (index_t i = 0; i < p.m; ++i)
              to[i] = softmax_loss<T, X>(model_of(p, w_ + i * p.classes * p.stride, scale), samples, p.y,
                                         p.idx ? p.idx + i * p.batch : nullptr, p.batch,
                                         resolve_threads(threads, work(p) / p.m));
          });
        });
        return result;
      },
      "W"_a, "X"_a, "y"_a, "idx"_a, "scale"_a, "bias"_a, "threads"_a, "Mean loss of every worker.");
  m.def(
      "softmax_predict",
      [](const py::array& w, const py::array& x, const py::array& out, double scale, bool bias, int threads) {
        const Problem p = check_problem(w, x, py::none(), py::none(), bias);
        std::int64_t* to = require_out<std::int64_t>(out, "out", {p.samples});
        dispatch_float(w, "W", [&](auto tag) {
          using T = decltype(tag);
          const T* w_ = require<T>(w, "W", {1, p.classes, p.stride});
          dispatch_feature(x, "X", [&](auto feature) {
            using X = decltype(feature);
            const Samples<X> samples{require<X>(x, "X", shape_of(x)), p.samples, p.features};
            Unlocked nogil;
            softmax_predict<T, X>(model_of(p, w_, scale), samples, to, resolve_threads(threads, work(p)));
          });
        });
      },
      "W"_a, "X"_a, "out"_a, "scale"_a, "bias"_a, "threads"_a, "Class of every row.");
}

}  // namespace byzadmm::bindings
