//===- Optimizer.cpp - Settings of optimizers that go together ------------===//

#include "neuroshard/Model/Optimizer.h"

namespace neuroshard {

static std::optional<SettingError> modeError(const Optimizer &optimizer) {
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  if (!properties.isOneWeightDecayMode ||
      optimizer.weightDecayMode == WeightDecayMode::Default ||
      optimizer.weightDecayMode == properties.weightDecayMode)
    return std::nullopt;
  return SettingError{"weight_decay_mode",
                      std::string(properties.name) + " has " +
                          std::string(toString(properties.weightDecayMode)) +
                          " weight decay alone, got: " +
                          std::string(toString(optimizer.weightDecayMode))};
}

std::optional<SettingError> settingError(const Optimizer &optimizer) {
  if (std::optional<SettingError> error = modeError(optimizer))
    return error;
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  if (!properties.hasEta && optimizer.eta != Optimizer().eta)
    return SettingError{"eta", std::string(properties.name) + " has no eta"};
  if (properties.hasPenalties)
    return std::nullopt;
  std::string message = std::string(properties.name) + " has no penalties";
  if (optimizer.l1Penalty != 0)
    return SettingError{"l1_penalty", message};
  if (optimizer.l2Penalty != 0)
    return SettingError{"l2_penalty", message};
  return std::nullopt;
}

std::optional<SettingError> settingError(const Optimizer &optimizer,
                                         ElementType weights) {
  if (optimizer.stochasticRounding && weights == ElementType::F32)
    return SettingError{"stochastic_rounding",
                        "weights of f32 are not rounded; it is for f16 and "
                        "bf16"};
  return settingError(optimizer);
}

} // namespace neuroshard
