//===- Results.h - A search's answer as Python dictionaries -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PYTHON_RESULTS_H
#define NEUROSHARD_LIB_PYTHON_RESULTS_H

#include "neuroshard/Planner/Search.h"

#include <nanobind/nanobind.h>

namespace neuroshard::python {

/// Their keys are the fields of the dataclasses in neuroshard.results.
nanobind::dict toPython(const CostBreakdown &breakdown);
nanobind::dict toPython(const MemoryReport &memory);
nanobind::dict toPython(const Migration &migration);

} // namespace neuroshard::python

#endif // NEUROSHARD_LIB_PYTHON_RESULTS_H
