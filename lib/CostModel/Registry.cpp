//===- Registry.cpp - Cost models by name ---------------------------------===//

#include "neuroshard/CostModel/Registry.h"

#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/CostModel/Roofline.h"

using namespace neuroshard;

Expected<std::unique_ptr<CostModel>>
neuroshard::makeCostModel(std::string_view name) {
  if (name == "roofline")
    return makeRooflineModel();
  if (name == "reference")
    return makeReferenceModel();
  return failure("cost_model", "expected roofline or reference, got: '" +
                                   std::string(name) + "'");
}
