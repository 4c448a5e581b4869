//===- Errors.cpp - Diagnostics as Python exceptions ----------------------===//

#include "Errors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace neuroshard;

nb::list python::toPython(const Diagnostics &diagnostics) {
  nb::list list;
  for (const Diagnostic &diagnostic : diagnostics)
    list.append(nb::make_tuple(diagnostic.where, diagnostic.message));
  return list;
}

void python::raise(const PlanningError &error) {
  std::string limit(toString(error.limit));
  raise("PlanningError", limit, error.message, error.details, error.advice);
}
