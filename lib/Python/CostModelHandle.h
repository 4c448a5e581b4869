//===- CostModelHandle.h - A built-in model or a user's own -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PYTHON_COSTMODELHANDLE_H
#define NEUROSHARD_LIB_PYTHON_COSTMODELHANDLE_H

#include "Errors.h"
#include "PythonCostModel.h"

#include <memory>
#include <optional>
#include <string>

namespace neuroshard::python {

struct CostModelHandle {
  std::shared_ptr<const CostModel> model;
  /// The same model if a user wrote it in Python, else null.
  const PythonCostModel *python = nullptr;

  bool failed() const { return python && python->failed(); }
  /// Raises what the user's model raised, or what was wrong with an answer of
  /// a library's. The GIL must be held.
  void rethrow() const {
    if (python)
      python->rethrow();
    if (std::optional<std::string> error = model->answerError())
      raise("CostModelError", *error);
  }
};

} // namespace neuroshard::python

#endif // NEUROSHARD_LIB_PYTHON_COSTMODELHANDLE_H
