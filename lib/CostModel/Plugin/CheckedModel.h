//===- CheckedModel.h - Checks what a model of others answers ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_PLUGIN_CHECKEDMODEL_H
#define NEUROSHARD_LIB_COSTMODEL_PLUGIN_CHECKEDMODEL_H

#include "neuroshard/Planner/CostModel.h"

#include <memory>
#include <string>

namespace neuroshard {

/// `model`, called `name`. A time that is missing, negative or no number, and
/// an exception, become answerError(), and dummies thereafter.
std::unique_ptr<CostModel> makeChecked(std::unique_ptr<CostModel> model,
                                       std::string name);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_PLUGIN_CHECKEDMODEL_H
