//===- CostModelHandle.h - A built-in model or a user's own -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PYTHON_COSTMODELHANDLE_H
#define NEUROSHARD_LIB_PYTHON_COSTMODELHANDLE_H

#include "PythonCostModel.h"

#include <memory>

namespace neuroshard::python {

struct CostModelHandle {
  std::shared_ptr<const CostModel> model;
  /// The same model if a user wrote it in Python, else null.
  const PythonCostModel *python = nullptr;

  bool failed() const { return python && python->failed(); }
  /// Raises what the user's model raised. The GIL must be held.
  void rethrow() const {
    if (python)
      python->rethrow();
  }
};

} // namespace neuroshard::python

#endif // NEUROSHARD_LIB_PYTHON_COSTMODELHANDLE_H
