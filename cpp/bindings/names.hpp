// Members of an enumeration by the names in choices.hpp.
#pragma once

#include "byzadmm/choices.hpp"
#include "errors.hpp"

namespace byzadmm::bindings {

template <class E>
py::tuple all_names() {
  py::list names;
  for (const char* name : Names<E>::of) names.append(name);
  return py::tuple(names);
}

template <class E>
E named(const std::string& name, const char* argument) {
  int position = 0;
  for (const char* known : Names<E>::of) {
    if (name == known) return static_cast<E>(position);
    ++position;
  }
  wrong_value(argument, "one of " + py::str(all_names<E>()).cast<std::string>(), "'" + name + "'");
}

template <class E>
const char* name_of(E member) {
  return Names<E>::of[static_cast<int>(member)];
}

}  // namespace byzadmm::bindings
