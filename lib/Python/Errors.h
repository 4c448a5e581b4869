//===- Errors.h - Diagnostics as Python exceptions --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PYTHON_ERRORS_H
#define NEUROSHARD_LIB_PYTHON_ERRORS_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Planner/Search.h"

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

namespace neuroshard::python {

/// [(where, message), ...].
nanobind::list toPython(const Diagnostics &diagnostics);

/// Raises the class of neuroshard.errors of this name, made of `arguments`.
/// The GIL must be held.
template <typename... Arguments>
[[noreturn]] void raise(const char *name, Arguments &&...arguments) {
  nanobind::object type =
      nanobind::module_::import_("neuroshard.errors").attr(name);
  nanobind::object error = type(std::forward<Arguments>(arguments)...);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nanobind::python_error();
}

[[noreturn]] void raise(const PlanningError &error);

/// The value, or the exception of this name made of the diagnostics.
template <typename T> T valueOrRaise(Expected<T> value, const char *exception) {
  if (!value)
    raise(exception, toPython(value.error()));
  return std::move(*value);
}

} // namespace neuroshard::python

#endif // NEUROSHARD_LIB_PYTHON_ERRORS_H
