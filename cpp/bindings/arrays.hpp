// Memory-level checks of what Python hands over: dtype, shape, order, writability.
//
// Nothing is converted: python/byzadmm/_internal/arrays.py does that, where a copy is visible. What passes these checks
// can be read and written through raw pointers with the interpreter lock released.
#pragma once

#include <string>
#include <vector>

#include "byzadmm/views.hpp"
#include "errors.hpp"
#include "unlocked.hpp"

namespace byzadmm::bindings {

inline Shape shape_of(const py::array& a) { return Shape(a.shape(), a.shape() + a.ndim()); }

template <class T>
bool has_dtype(const py::array& a) {
  return py::isinstance<py::array_t<T>>(a);
}

/// x as an array, if it is one: what is not would be read as if it were.
inline py::array as_array(const py::handle& x, const char* name) {
  if (!py::isinstance<py::array>(x)) no_array(name, x);
  return py::reinterpret_borrow<py::array>(x);
}

inline void require_dims(const py::array& a, const char* name, index_t ndim) {
  if (a.ndim() != ndim) wrong_dims(name, ndim, a);
}

/// a's data as const T*, once dtype, shape and C order have been checked.
template <class T>
const T* require(const py::array& a, const char* name, const Shape& shape) {
  if (!has_dtype<T>(a)) wrong_dtype(name, text(py::dtype::of<T>()), a);
  if (shape_of(a) != shape) wrong_shape(name, shape, shape_of(a));
  require_value(a.flags() & py::array::c_style, name, "a C-contiguous array");
  require_value(a.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_, name, "an aligned array");
  return static_cast<const T*>(a.data());
}

/// The same for an array that is written.
template <class T>
T* require_out(const py::array& a, const char* name, const Shape& shape) {
  require<T>(a, name, shape);
  require_value(a.writeable(), name, "a writable array, got a read-only one");
  return const_cast<T*>(static_cast<const T*>(a.data()));
}

/// Weights of n rows, or nullptr for None; python/byzadmm/aggregate checks what they may be.
inline const double* weights_of(const py::object& weights, index_t n) {
  return weights.is_none() ? nullptr : require<double>(as_array(weights, "weights"), "weights", {n});
}

/// The same for kernels that divide by them.
inline const double* positive_weights(const py::object& weights, index_t n) {
  const double* w = require<double>(as_array(weights, "weights"), "weights", {n});
  for (index_t i = 0; i < n; ++i) require_value(w[i] > 0, "weights", "positive numbers");
  return w;
}

/// f(T{}) with T = float or double by the dtype of `a`.
template <class F>
auto dispatch_float(const py::array& a, const char* name, F&& f) {
  if (has_dtype<float>(a)) return f(float{});
  if (has_dtype<double>(a)) return f(double{});
  wrong_dtype(name, "float32 or float64", a);
}

/// f(X{}) with X = uint8_t, float or double by the dtype of `a`.
template <class F>
auto dispatch_feature(const py::array& a, const char* name, F&& f) {
  if (has_dtype<std::uint8_t>(a)) return f(std::uint8_t{});
  if (has_dtype<float>(a)) return f(float{});
  if (has_dtype<double>(a)) return f(double{});
  wrong_dtype(name, "uint8, float32 or float64", a);
}

/// The rows of x (n, d), of any storage type, read as T.
template <class T>
SamplesAs<T> samples_of(const py::array& x) {
  require_dims(x, "X", 2);
  return dispatch_feature(x, "X", [&](auto feature) {
    using X = decltype(feature);
    using Make = SamplesAs<T> (*)(Samples<X>);
    return std::get<Make>(kernels<T>().samples_as)({require<X>(x, "X", shape_of(x)), x.shape(0), x.shape(1)});
  });
}

/// The rows of a C-ordered (n, d) array; n may be 0.
template <class T>
MatrixRows<T> matrix_rows(const py::array& a, const char* name) {
  require_dims(a, name, 2);
  return {require<T>(a, name, shape_of(a)), a.shape(0), a.shape(1)};
}

}  // namespace byzadmm::bindings
