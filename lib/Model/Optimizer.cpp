//===- Optimizer.cpp - Settings of optimizers that go together ------------===//

#include "neuroshard/Model/Optimizer.h"

namespace neuroshard {

std::string settingsError(const Optimizer &optimizer) {
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  if (!properties.isOneWeightDecayMode ||
      optimizer.weightDecayMode == WeightDecayMode::Default ||
      optimizer.weightDecayMode == properties.weightDecayMode)
    return "";
  return std::string(properties.name) + " has " +
         std::string(toString(properties.weightDecayMode)) +
         " weight decay alone, got: " +
         std::string(toString(optimizer.weightDecayMode));
}

} // namespace neuroshard
