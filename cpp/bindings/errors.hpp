// The errors that the bindings raise, worded: the argument, what was expected, what came.
#pragma once

#include <string>
#include <vector>

#include "byzadmm/config.hpp"
#include "pybind.hpp"

namespace byzadmm::bindings {

using Shape = std::vector<index_t>;

inline std::string text(const std::string& s) { return s; }
inline std::string text(std::int64_t number) { return std::to_string(number); }
inline std::string text(const Shape& shape) {
  std::string s = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + (shape.size() == 1 ? ",)" : ")");
}
inline std::string text(const py::dtype& dtype) { return py::str(dtype).cast<std::string>(); }

inline std::string expected(const char* name, const std::string& what) {
  return std::string(name) + ": expected " + what;
}

[[noreturn]] inline void wrong_kind(const char* name, const std::string& what, const std::string& got) {
  throw py::type_error(expected(name, what) + ", got " + got);
}
[[noreturn]] inline void wrong_value(const char* name, const std::string& what, const std::string& got) {
  throw py::value_error(expected(name, what) + ", got " + got);
}
inline void require_value(bool holds, const char* name, const char* what) {
  if (!holds) throw py::value_error(expected(name, what));
}

[[noreturn]] inline void no_array(const char* name, const py::handle& x) {
  wrong_kind(name, "an array", py::type::handle_of(x).attr("__name__").cast<std::string>());
}
[[noreturn]] inline void wrong_dtype(const char* name, const std::string& wanted, const py::array& a) {
  wrong_kind(name, "dtype " + wanted, text(a.dtype()));
}
[[noreturn]] inline void wrong_dims(const char* name, index_t wanted, const py::array& a) {
  wrong_value(name, text(wanted) + " dimensions", text(static_cast<std::int64_t>(a.ndim())));
}
[[noreturn]] inline void wrong_shape(const char* name, const Shape& wanted, const Shape& got) {
  wrong_value(name, "shape " + text(wanted), text(got));
}
[[noreturn]] inline void nothing_in(const char* name, const char* what, const std::string& got) {
  wrong_value(name, std::string("at least one ") + what, got);
}
inline void require_below(std::int64_t number, index_t end, const char* name, const char* what) {
  if (number < 0 || number >= end) wrong_value(name, std::string(what) + " in [0, " + text(end) + ")", text(number));
}
/// Before anything is written: a label out of range would be written out of bounds.
inline void require_label(std::int64_t label, index_t classes, index_t row) {
  if (label < 0 || label >= classes)
    wrong_value("y", "labels in [0, " + text(classes) + ")", text(label) + " at row " + text(row));
}

}  // namespace byzadmm::bindings
