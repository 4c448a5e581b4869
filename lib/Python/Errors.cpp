//===- Errors.cpp - Diagnostics as Python exceptions ----------------------===//

#include "Errors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace neuroshard;

/// Messages may quote files that are no UTF-8.
static nb::object toText(const std::string &text) {
  return nb::steal(PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

nb::list python::toPython(const Diagnostics &diagnostics) {
  nb::list list;
  for (const Diagnostic &diagnostic : diagnostics)
    list.append(
        nb::make_tuple(toText(diagnostic.where), toText(diagnostic.message)));
  return list;
}

void python::raise(const PlanningError &error) {
  std::string limit(toString(error.limit));
  raise("PlanningError", limit, error.message, error.details, error.advice);
}
