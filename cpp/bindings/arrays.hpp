// Memory-level checks of what Python hands over: dtype, shape, order, writability. Every message is worded here.
//
// Nothing is converted: python/byzadmm/_internal/arrays.py does that, where a copy is visible. What passes these checks can be
// read and written through raw pointers with the interpreter lock released.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "byzadmm/parallel.hpp"
#include "byzadmm/views.hpp"
#include "pybind.hpp"

namespace byzadmm::bindings {

using Shape = std::vector<index_t>;

inline std::string text(const Shape& shape) {
  std::string s = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + (shape.size() == 1 ? ",)" : ")");
}

inline Shape shape_of(const py::array& a) { return Shape(a.shape(), a.shape() + a.ndim()); }

template <class T>
std::string dtype_name() {
  return py::str(py::dtype::of<T>()).template cast<std::string>();
}

inline std::string dtype_name(const py::array& a) { return py::str(a.dtype()).cast<std::string>(); }

template <class T>
bool has_dtype(const py::array& a) {
  return py::isinstance<py::array_t<T>>(a);
}

/// x as an array, if it is one: what is not would be read as if it were.
inline py::array as_array(const py::handle& x, const char* name) {
  if (!py::isinstance<py::array>(x))
    throw py::type_error(std::string(name) + ": expected an array, got " +
                         py::type::handle_of(x).attr("__name__").cast<std::string>());
  return py::reinterpret_borrow<py::array>(x);
}

inline void require_dims(const py::array& a, const char* name, index_t ndim) {
  if (a.ndim() != ndim)
    throw py::value_error(std::string(name) + ": expected " + std::to_string(ndim) + " dimensions, got " +
                          std::to_string(a.ndim()));
}

/// a's data as const T*, once dtype, shape and C order have been checked.
template <class T>
const T* require(const py::array& a, const char* name, const Shape& shape) {
  if (!has_dtype<T>(a))
    throw py::type_error(std::string(name) + ": expected dtype " + dtype_name<T>() + ", got " + dtype_name(a));
  if (shape_of(a) != shape)
    throw py::value_error(std::string(name) + ": expected shape " + text(shape) + ", got " + text(shape_of(a)));
  if (!(a.flags() & py::array::c_style)) throw py::value_error(std::string(name) + ": expected a C-contiguous array");
  if (!(a.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_))
    throw py::value_error(std::string(name) + ": expected an aligned array");
  return static_cast<const T*>(a.data());
}

/// The same for an array that is written.
template <class T>
T* require_out(const py::array& a, const char* name, const Shape& shape) {
  require<T>(a, name, shape);
  if (!a.writeable()) throw py::value_error(std::string(name) + ": expected a writable array, got a read-only one");
  return const_cast<T*>(static_cast<const T*>(a.data()));
}

/// f(T{}) with T = float or double by the dtype of `a`.
template <class F>
auto dispatch_float(const py::array& a, const char* name, F&& f) {
  if (has_dtype<float>(a)) return f(float{});
  if (has_dtype<double>(a)) return f(double{});
  throw py::type_error(std::string(name) + ": expected dtype float32 or float64, got " + dtype_name(a));
}

/// f(X{}) with X = uint8_t, float or double by the dtype of `a`.
template <class F>
auto dispatch_feature(const py::array& a, const char* name, F&& f) {
  if (has_dtype<std::uint8_t>(a)) return f(std::uint8_t{});
  if (has_dtype<float>(a)) return f(float{});
  if (has_dtype<double>(a)) return f(double{});
  throw py::type_error(std::string(name) + ": expected dtype uint8, float32 or float64, got " + dtype_name(a));
}

/// Pointers to the rows of a C-ordered (n, d) array; n may be 0.
template <class T>
class MatrixRows {
 public:
  MatrixRows(const py::array& a, const char* name) : d_(a.ndim() == 2 ? a.shape(1) : 0) {
    require_dims(a, name, 2);
    const T* data = require<T>(a, name, shape_of(a));
    for (index_t i = 0; i < a.shape(0); ++i) row_.push_back(data + i * d_);
  }
  Rows<T> view() const { return {row_.data(), static_cast<index_t>(row_.size()), d_}; }

 private:
  std::vector<const T*> row_;
  index_t d_;
};

/// Rows of a C-ordered (n, d) array, or of a list of n arrays (d,); `keep` picks some of them. Holds the references.
template <class T>
class RowList {
 public:
  RowList(const py::object& x, const py::object& keep) {
    if (py::isinstance<py::array>(x)) {
      const auto a = py::reinterpret_borrow<py::array>(x);
      require_dims(a, "X", 2);
      const T* data = require<T>(a, "X", shape_of(a));
      d_ = a.shape(1);
      take(a.shape(0), keep, [&](index_t i) { return data + i * d_; });
    } else {
      const auto list = py::reinterpret_borrow<py::list>(x);
      const auto row = [&](index_t i) {
        auto a = as_array(list[static_cast<std::size_t>(i)], "X");
        require_dims(a, "X", 1);
        return a;
      };
      const auto n = static_cast<index_t>(list.size());
      d_ = n ? row(0).shape(0) : 0;
      take(n, keep, [&](index_t i) { return require<T>(row(i), "X", {d_}); });
    }
    if (row_.empty() || d_ == 0)
      throw py::value_error("X: expected at least one row and one column, got " +
                            text({static_cast<index_t>(row_.size()), d_}));
  }

  Rows<T> view() const { return {row_.data(), static_cast<index_t>(row_.size()), d_}; }
  index_t n() const { return static_cast<index_t>(row_.size()); }
  index_t d() const { return d_; }

 private:
  /// Looks at the rows that it picks only: a call per bucket of two must not cost n each time.
  template <class Row>
  void take(index_t n, const py::object& keep, Row&& row) {
    if (keep.is_none()) {
      for (index_t i = 0; i < n; ++i) row_.push_back(row(i));
      return;
    }
    for (const auto i : keep.cast<std::vector<index_t>>()) {
      if (i < 0 || i >= n) throw py::index_error("keep: expected rows in [0, " + std::to_string(n) + ")");
      row_.push_back(row(i));
    }
  }

  std::vector<const T*> row_;
  index_t d_ = 0;
};

/// The array that says which dtype a list of rows has.
inline py::array first_array(const py::object& x) {
  if (py::isinstance<py::array>(x)) return py::reinterpret_borrow<py::array>(x);
  if (!py::isinstance<py::list>(x)) return as_array(x, "X");  // neither: the message of as_array
  const auto list = py::reinterpret_borrow<py::list>(x);
  if (list.empty()) throw py::value_error("X: expected at least one row, got none");
  return as_array(list[0], "X");
}

}  // namespace byzadmm::bindings
