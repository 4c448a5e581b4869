//===- Bindings.h - The parts of the Python module --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PYTHON_BINDINGS_H
#define NEUROSHARD_LIB_PYTHON_BINDINGS_H

#include <nanobind/nanobind.h>

namespace neuroshard::python {

/// Each adds its classes and functions to the module.
void bindArtifact(nanobind::module_ &module);
void bindProblem(nanobind::module_ &module);
void bindCostModel(nanobind::module_ &module);
void bindDeviceClass(nanobind::module_ &module);
void bindOtherPlacement(nanobind::module_ &module);
void bindSearch(nanobind::module_ &module);
void bindTraffic(nanobind::module_ &module);
void bindVocabulary(nanobind::module_ &module);

} // namespace neuroshard::python

#endif // NEUROSHARD_LIB_PYTHON_BINDINGS_H
