//===- Optimizer.cpp - Settings of optimizers that go together ------------===//

#include "neuroshard/Model/Optimizer.h"

#include "neuroshard/Support/ShortestText.h"

#include <cmath>

namespace neuroshard {

static std::optional<SettingError> modeError(const Optimizer &optimizer) {
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  if (optimizer.weightDecayMode == WeightDecayMode::AdagradW &&
      !properties.hasCounters)
    return SettingError{"weight_decay_mode",
                        "adagradw is of rowwise_adagrad_with_counter alone, "
                        "got: " +
                            std::string(properties.name)};
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

static std::optional<SettingError> counterError(const Optimizer &optimizer) {
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  if (!properties.hasCounters) {
    std::string message = std::string(properties.name) + " has no counters";
    if (optimizer.counterHalflife != Optimizer().counterHalflife)
      return SettingError{"counter_halflife", message};
    if (optimizer.adjustmentIter != Optimizer().adjustmentIter)
      return SettingError{"adjustment_iter", message};
    if (optimizer.adjustmentUb != Optimizer().adjustmentUb)
      return SettingError{"adjustment_ub", message};
    return std::nullopt;
  }
  double halflife = optimizer.counterHalflife;
  for (auto [name, value] :
       {std::pair("counter_halflife", halflife),
        std::pair("adjustment_iter", optimizer.adjustmentIter),
        std::pair("adjustment_ub", optimizer.adjustmentUb)})
    if (!std::isfinite(value))
      return SettingError{name,
                          "must be a number, got: " + shortestText(value)};
  if (optimizer.adjustmentIter < -1)
    return SettingError{"adjustment_iter",
                        "must be at least -1, got: " +
                            shortestText(optimizer.adjustmentIter)};
  if (optimizer.adjustmentIter != std::floor(optimizer.adjustmentIter))
    return SettingError{"adjustment_iter",
                        "must be a whole number of steps, got: " +
                            shortestText(optimizer.adjustmentIter)};
  bool isAdagradW = decayModeOf(optimizer) == WeightDecayMode::AdagradW;
  if (halflife < 0 && halflife != -1 && !(halflife == -2 && isAdagradW))
    return SettingError{"counter_halflife",
                        "must be a number of steps, 0, which counts no more "
                        "than one step, -1, which counts all alike, or -2, "
                        "which does so and is of adagradw alone, got: " +
                            shortestText(halflife)};
  if (weightDecayOf(optimizer) && !isAdagradW && halflife <= 0)
    return SettingError{"counter_halflife",
                        "must be above 0 under l2 and decoupled weight decay, "
                        "which takes counter_halflife / row_counter of it, "
                        "got: " +
                            shortestText(halflife)};
  return std::nullopt;
}

std::optional<SettingError> settingError(const Optimizer &optimizer) {
  if (std::optional<SettingError> error = modeError(optimizer))
    return error;
  if (std::optional<SettingError> error = counterError(optimizer))
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
