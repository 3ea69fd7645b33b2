// One call of a rule: rows in, a vector out, the lock released in between.
#pragma once

#include "arrays.hpp"

namespace byzadmm::bindings {

/// Rows of a C-ordered (n, d) array, or of a list of n arrays (d,); `keep` picks some of them. Holds the references.
template <class T>
class RowCall {
 public:
  using Value = T;
  RowCall(const py::object& x, const py::object& keep) {
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
    if (row_.empty() || d_ == 0) nothing_in("X", "row and one column", text(Shape{n(), d_}));
  }

  index_t n() const { return static_cast<index_t>(row_.size()); }
  index_t d() const { return d_; }

  /// A point (d), or nullptr for None.
  const T* center(const py::object& point) const {
    return point.is_none() ? nullptr : require<T>(as_array(point, "center"), "center", {d_});
  }

  /// The memory of an output: (d), or (rows, d).
  T* into(const py::array& out) const { return require_out<T>(out, "out", {d_}); }
  T* into(const py::array& out, index_t rows) const { return require_out<T>(out, "out", {rows, d_}); }

  /// kernel(kernels of T, rows, thread count) with the lock released; `work` is in element operations.
  template <class Kernel>
  auto run(int threads, index_t work, Kernel&& kernel) const {
    const int team = table().resolve_threads(threads, work);
    const Unlocked unlocked;
    return kernel(kernels<T>(), Rows<T>{row_.data(), n(), d_}, team);
  }
  index_t size() const { return n() * d_; }

 private:
  /// Looks at the rows that it picks only: a call per bucket of two must not cost n each time.
  template <class Row>
  void take(index_t n, const py::object& keep, Row&& row) {
    if (keep.is_none()) {
      row_.reserve(static_cast<std::size_t>(n));
      for (index_t i = 0; i < n; ++i) row_.push_back(row(i));
      return;
    }
    for (const auto i : keep.cast<std::vector<index_t>>()) {
      if (i < 0 || i >= n) throw py::index_error(expected("keep", "rows in [0, " + text(n) + ")"));
      row_.push_back(row(i));
    }
  }

  std::vector<const T*> row_;
  index_t d_ = 0;
};

/// The array that says which dtype a list of rows has.
inline py::array first_array(const py::object& x) {
  if (py::isinstance<py::array>(x)) return py::reinterpret_borrow<py::array>(x);
  if (!py::isinstance<py::list>(x)) no_array("X", x);
  const auto list = py::reinterpret_borrow<py::list>(x);
  if (list.empty()) nothing_in("X", "row", "none");
  return as_array(list[0], "X");
}

/// call(RowCall of X's dtype).
template <class Call>
auto on_rows(const py::object& x, const py::object& keep, Call&& call) {
  return dispatch_float(first_array(x), "X", [&](auto tag) { return call(RowCall<decltype(tag)>(x, keep)); });
}

}  // namespace byzadmm::bindings
