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
  if (!propertiesOf(optimizer.kind).hasCounters)
    return std::nullopt;
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

std::string noSuchSetting(OptimizerKind kind, std::string_view setting) {
  std::string message(toString(kind));
  message += " has no " + std::string(setting) + "; it has ";
  for (const NumberSetting &known : kNumberSettings)
    if (hasSetting(kind, known))
      message += std::string(known.name) + ", ";
  return message + (propertiesOf(kind).canCatchUp
                        ? "weight_decay_mode, stochastic_rounding and catch_up"
                        : "weight_decay_mode and stochastic_rounding");
}

/// "a, b and c": the optimizers that can catch up.
static std::string catchingUp() {
  std::vector<std::string_view> names;
  for (const OptimizerProperties &properties : kOptimizers)
    if (properties.canCatchUp)
      names.push_back(properties.name);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text.append(i == 0                  ? ""
                : i + 1 == names.size() ? " and "
                                        : ", ")
        .append(names[i]);
  return text;
}

static std::optional<SettingError> catchUpError(const Optimizer &optimizer) {
  if (!optimizer.catchUp)
    return std::nullopt;
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  std::string name(properties.name);
  if (!properties.canCatchUp)
    return SettingError{
        "catch_up", "is of " + catchingUp() +
                        ", whose steps without a gradient need nothing but the "
                        "row's own elements; got: " +
                        name};
  if (properties.hasEps && optimizer.eps == 0)
    return SettingError{"eps", "must be above 0 with catch_up: a row without "
                               "gradients so far would be 0 / 0"};
  if (!properties.hasBeta1 && optimizer.weightDecay == 0)
    return SettingError{"catch_up",
                        "changes nothing with " + name +
                            " without weight_decay: rows stay as they are in "
                            "steps that do not touch them; leave it out"};
  return std::nullopt;
}

std::optional<SettingError> settingError(const Optimizer &optimizer) {
  for (const NumberSetting &setting : kNumberSettings)
    if (!hasSetting(optimizer.kind, setting) &&
        optimizer.*setting.value != Optimizer().*setting.value)
      return SettingError{setting.name,
                          noSuchSetting(optimizer.kind, setting.name)};
  if (std::optional<SettingError> error = modeError(optimizer))
    return error;
  if (std::optional<SettingError> error = counterError(optimizer))
    return error;
  return catchUpError(optimizer);
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
