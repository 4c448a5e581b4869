//===- Module.cpp - The compiled module of the Python package -------------===//

#include "Bindings.h"

NB_MODULE(_planner, module) {
  module.attr("__doc__") =
      "The compiled half of neuroshard: use the names that neuroshard itself "
      "exports.";
  neuroshard::python::bindArtifact(module);
  neuroshard::python::bindVocabulary(module);
  neuroshard::python::bindDeviceClass(module);
  neuroshard::python::bindProblem(module);
  neuroshard::python::bindCostModel(module);
  neuroshard::python::bindOtherPlacement(module);
  neuroshard::python::bindSearch(module);
  neuroshard::python::bindTraffic(module);
}
