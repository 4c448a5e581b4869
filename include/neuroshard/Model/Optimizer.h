//===- Optimizer.h - Optimizers, their states and norms ---------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_OPTIMIZER_H
#define NEUROSHARD_MODEL_OPTIMIZER_H

#include "neuroshard/Model/Types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neuroshard {

enum class OptimizerKind {
  SGD,
  Adagrad,
  RowWiseAdagrad,
  Adam,
  Momentum,
  AdamW,
  PartialRowWiseAdam,
  RowWiseRMSprop,
  FTRL,
  LARS,
  LAMB,
  PartialRowWiseLAMB,
  RowWiseAdagradWithCounter
};

/// Where weight decay goes. L2: decay * weights is added to the gradient, and
/// so reaches the states. Decoupled: weights are multiplied by 1 - lr * decay
/// before the step, and states do not see it (Loshchilov and Hutter, Decoupled
/// Weight Decay Regularization, algorithm 2; torch.optim.AdamW). Default: as
/// the kind of optimizer has it. LAMB adds decay * weights to the direction of
/// its step, which states do not see either: that is its Decoupled. AdagradW,
/// of row-wise Adagrad with counter alone: decoupled, also of the steps since
/// the row's last one.
enum class WeightDecayMode { Default, L2, Decoupled, AdagradW };

/// State of a row-wise optimizer when a table is split by columns.
/// Exact: one state per row, as without sharding (column owners exchange the
/// sums over columns that a step needs, normsPerRow per unique row). PerShard:
/// one per shard, which trains differently. The same for the norms of trust
/// ratios.
enum class OptimizerSemantics { Exact, PerShard };

/// An optimizer and its hyperparameters; those that its kind does not have
/// (kNumberSettings) must stay at their defaults. `beta1` is the decay of the
/// first moment, for momentum the factor of its buffer. `eps` is FTRL's beta,
/// and the penalties its lambda1 and lambda2. `eta` is the factor of LARS's
/// trust ratio. `counterHalflife`, `adjustmentIter` and `adjustmentUb` are
/// those of FBGEMM's CounterBasedRegularizationDefinition; docs/kernels.md says
/// what they do.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::SGD;
  double eps = 1e-8;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double initialAccumulator = 0;
  double weightDecay = 0;
  WeightDecayMode weightDecayMode = WeightDecayMode::Default;
  double l1Penalty = 0;
  double l2Penalty = 0;
  double eta = 0.001;
  double counterHalflife = -1;
  double adjustmentIter = -1;
  double adjustmentUb = 1;
  /// Elements of a row's summed gradient are clamped to [-maxGradient,
  /// maxGradient] before all else; 0: not at all.
  double maxGradient = 0;
  /// Weights of f16 and bf16 are rounded up or down at random, so that updates
  /// smaller than half of the last bit are not lost.
  bool stochasticRounding = false;
  /// Rows that a step does not touch take it as well, with a gradient of 0, as
  /// a dense optimizer of torch.optim has it: late, all steps that they missed
  /// at once, before they are read.
  bool catchUp = false;

  bool operator==(const Optimizer &) const = default;
};

/// Most arrays of state that an optimizer keeps.
inline constexpr int64_t kMaxStates = 3;

/// How many f32 arrays of state an optimizer keeps with one value per element
/// of the table, and with one value per row.
struct OptimizerStates {
  int perElement = 0;
  int perRow = 0;

  constexpr int count() const { return perElement + perRow; }
  /// Whether state number `index` has one value per row: these come last.
  constexpr bool isPerRow(int64_t index) const { return index >= perElement; }
  bool operator==(const OptimizerStates &) const = default;
};

/// What all optimizers of a kind have in common; nothing else lists kinds.
struct OptimizerProperties {
  std::string_view name;
  OptimizerStates states = {};
  /// As torch.optim and FBGEMM name them; those per element come first.
  std::array<std::string_view, kMaxStates> stateNames = {};
  WeightDecayMode weightDecayMode = WeightDecayMode::L2;
  /// The mode is what the optimizer is named for, so no other can be set.
  bool isOneWeightDecayMode = false;
  /// Settings that the step depends on.
  bool hasEps = false;
  bool hasBeta1 = false;
  bool hasBeta2 = false;
  /// The step size corrects the bias of moments that begin at 0.
  bool correctsBias = false;
  bool hasPenalties = false;
  /// Its first state is a sum, which begins at initialAccumulator; others at 0.
  bool accumulates = false;
  /// The step divides by the learning rate, which must be above 0.
  bool dividesByRate = false;
  /// Sums over all columns of a row that its step needs; docs/kernels.md says
  /// of what.
  int normsPerRow = 0;
  /// The step is scaled by the norm of the row's weights divided by that of
  /// their update, so norms are also of weights.
  bool hasTrustRatio = false;
  bool hasEta = false;
  /// Its last two states are the number of the row's last step and how often
  /// the row was in one, which its weight decay depends on.
  bool hasCounters = false;
  /// A step of a row by a gradient of 0 can change it and needs nothing but the
  /// row's own elements, so that it may be taken late.
  bool canCatchUp = false;
};

/// In the order of OptimizerKind.
inline constexpr std::array<OptimizerProperties, 13> kOptimizers = {{
    {.name = "sgd", .canCatchUp = true},
    {.name = "adagrad",
     .states = {.perElement = 1},
     .stateNames = {"sum"},
     .hasEps = true,
     .accumulates = true,
     .canCatchUp = true},
    {.name = "rowwise_adagrad",
     .states = {.perRow = 1},
     .stateNames = {"sum"},
     .hasEps = true,
     .accumulates = true,
     .normsPerRow = 1},
    {.name = "adam",
     .states = {.perElement = 2},
     .stateNames = {"exp_avg", "exp_avg_sq"},
     .hasEps = true,
     .hasBeta1 = true,
     .hasBeta2 = true,
     .correctsBias = true,
     .canCatchUp = true},
    {.name = "momentum",
     .states = {.perElement = 1},
     .stateNames = {"momentum_buffer"},
     .hasBeta1 = true,
     .canCatchUp = true},
    {.name = "adamw",
     .states = {.perElement = 2},
     .stateNames = {"exp_avg", "exp_avg_sq"},
     .weightDecayMode = WeightDecayMode::Decoupled,
     .isOneWeightDecayMode = true,
     .hasEps = true,
     .hasBeta1 = true,
     .hasBeta2 = true,
     .correctsBias = true,
     .canCatchUp = true},
    {.name = "partial_rowwise_adam",
     .states = {.perElement = 1, .perRow = 1},
     .stateNames = {"exp_avg", "exp_avg_sq"},
     .weightDecayMode = WeightDecayMode::Decoupled,
     .hasEps = true,
     .hasBeta1 = true,
     .hasBeta2 = true,
     .correctsBias = true,
     .normsPerRow = 1},
    {.name = "rowwise_rmsprop",
     .states = {.perRow = 1},
     .stateNames = {"square_avg"},
     .hasEps = true,
     .hasBeta2 = true,
     .normsPerRow = 1},
    {.name = "ftrl",
     .states = {.perElement = 2},
     .stateNames = {"sum", "linear"},
     .isOneWeightDecayMode = true,
     .hasEps = true,
     .hasPenalties = true,
     .accumulates = true,
     .dividesByRate = true},
    {.name = "lars_sgd",
     .states = {.perElement = 1},
     .stateNames = {"momentum_buffer"},
     .isOneWeightDecayMode = true,
     .hasBeta1 = true,
     .normsPerRow = 2,
     .hasTrustRatio = true,
     .hasEta = true},
    {.name = "lamb",
     .states = {.perElement = 2},
     .stateNames = {"exp_avg", "exp_avg_sq"},
     .weightDecayMode = WeightDecayMode::Decoupled,
     .isOneWeightDecayMode = true,
     .hasEps = true,
     .hasBeta1 = true,
     .hasBeta2 = true,
     .correctsBias = true,
     .normsPerRow = 2,
     .hasTrustRatio = true},
    {.name = "partial_rowwise_lamb",
     .states = {.perElement = 1, .perRow = 1},
     .stateNames = {"exp_avg", "exp_avg_sq"},
     .weightDecayMode = WeightDecayMode::Decoupled,
     .isOneWeightDecayMode = true,
     .hasEps = true,
     .hasBeta1 = true,
     .hasBeta2 = true,
     .correctsBias = true,
     .normsPerRow = 4,
     .hasTrustRatio = true},
    {.name = "rowwise_adagrad_with_counter",
     .states = {.perRow = 3},
     .stateNames = {"sum", "prev_iter", "row_counter"},
     .hasEps = true,
     .accumulates = true,
     .normsPerRow = 1,
     .hasCounters = true},
}};

constexpr const OptimizerProperties &propertiesOf(OptimizerKind kind) {
  return kOptimizers[static_cast<size_t>(kind)];
}

/// A setting that is a number.
struct NumberSetting {
  /// As files, the IR and Python name it.
  const char *name;
  double Optimizer::*value;
  /// Which kinds have it; null: all.
  bool OptimizerProperties::*isOf = nullptr;
};

/// All of them, in the order of the members of Optimizer.
inline constexpr std::array<NumberSetting, 12> kNumberSettings = {{
    {"eps", &Optimizer::eps, &OptimizerProperties::hasEps},
    {"beta1", &Optimizer::beta1, &OptimizerProperties::hasBeta1},
    {"beta2", &Optimizer::beta2, &OptimizerProperties::hasBeta2},
    {"initial_accumulator", &Optimizer::initialAccumulator,
     &OptimizerProperties::accumulates},
    {"weight_decay", &Optimizer::weightDecay},
    {"l1_penalty", &Optimizer::l1Penalty, &OptimizerProperties::hasPenalties},
    {"l2_penalty", &Optimizer::l2Penalty, &OptimizerProperties::hasPenalties},
    {"eta", &Optimizer::eta, &OptimizerProperties::hasEta},
    {"counter_halflife", &Optimizer::counterHalflife,
     &OptimizerProperties::hasCounters},
    {"adjustment_iter", &Optimizer::adjustmentIter,
     &OptimizerProperties::hasCounters},
    {"adjustment_ub", &Optimizer::adjustmentUb,
     &OptimizerProperties::hasCounters},
    {"max_gradient", &Optimizer::maxGradient},
}};

/// Whether optimizers of a kind have a setting.
constexpr bool hasSetting(OptimizerKind kind, const NumberSetting &setting) {
  return !setting.isOf || propertiesOf(kind).*setting.isOf;
}

/// "sgd has no eps; it has weight_decay, ...": the error on a setting that a
/// kind does not have, with all that it has.
std::string noSuchSetting(OptimizerKind kind, std::string_view setting);

/// Whether a number, such as one from a file, is that of a kind.
constexpr bool isOptimizerKind(OptimizerKind kind) {
  return static_cast<size_t>(kind) < kOptimizers.size();
}

/// Of rows that catch up: the number of steps that the row has taken since all
/// rows had caught up, the last of the states.
inline constexpr std::string_view kCaughtUpState = "caught_up_to";

/// The states of an optimizer.
constexpr OptimizerStates optimizerStates(const Optimizer &optimizer) {
  OptimizerStates states = propertiesOf(optimizer.kind).states;
  if (optimizer.catchUp)
    ++states.perRow;
  return states;
}

/// Whether a row has one factor of all its elements, by a state per row.
constexpr bool isRowWise(OptimizerKind kind) {
  return propertiesOf(kind).states.perRow > 0;
}

/// Floats that the owners of a row's columns exchange for its step.
constexpr int64_t normsPerRow(OptimizerKind kind) {
  return propertiesOf(kind).normsPerRow;
}

/// The first value of state number `index`.
constexpr double initialState(const Optimizer &optimizer, int64_t index) {
  bool isSum = index == 0 && propertiesOf(optimizer.kind).accumulates;
  return isSum ? optimizer.initialAccumulator : 0;
}

/// The mode, which is not Default.
constexpr WeightDecayMode decayModeOf(const Optimizer &optimizer) {
  return optimizer.weightDecayMode != WeightDecayMode::Default
             ? optimizer.weightDecayMode
             : propertiesOf(optimizer.kind).weightDecayMode;
}

/// The same, but none without weight decay.
constexpr std::optional<WeightDecayMode>
weightDecayOf(const Optimizer &optimizer) {
  if (optimizer.weightDecay == 0)
    return std::nullopt;
  return decayModeOf(optimizer);
}

/// Whether weight decay takes the same share of the weights of every row before
/// their step: decoupled, but neither in the direction of a trust ratio's step
/// nor by counters.
constexpr bool keepsShare(const Optimizer &optimizer) {
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  return weightDecayOf(optimizer) == WeightDecayMode::Decoupled &&
         !properties.hasTrustRatio && !properties.hasCounters;
}

/// A setting that an optimizer cannot have.
struct SettingError {
  /// As files name it.
  const char *setting;
  std::string message;
};

/// The first one, if there is any.
std::optional<SettingError> settingError(const Optimizer &optimizer);
/// The same of an optimizer of weights of a type.
std::optional<SettingError> settingError(const Optimizer &optimizer,
                                         ElementType weights);

/// Do the owners of a table's rows exchange norms over its columns, so that its
/// update takes two phases? One shard cut by columns decides it for all
/// shards of its table, also for those that hold whole rows: the exchange is
/// one per table. `columnSplit`: some shard of the table holds only a part of
/// its columns.
constexpr bool needsNormExchange(OptimizerKind kind,
                                 OptimizerSemantics semantics,
                                 bool columnSplit) {
  return columnSplit && semantics == OptimizerSemantics::Exact &&
         normsPerRow(kind) > 0;
}

/// True if the states per row depend on the weights, by L2 weight decay: the
/// norms that the owners of a row's columns exchange are then of gradients with
/// decay, so that weights are read for them.
constexpr bool normsNeedWeights(const Optimizer &optimizer) {
  return isRowWise(optimizer.kind) &&
         weightDecayOf(optimizer) == WeightDecayMode::L2;
}

std::string_view toString(OptimizerKind kind);
std::string_view toString(OptimizerSemantics semantics);
std::string_view toString(WeightDecayMode mode);
std::optional<OptimizerKind> parseOptimizerKind(std::string_view text);
std::optional<OptimizerSemantics>
parseOptimizerSemantics(std::string_view text);
std::optional<WeightDecayMode> parseWeightDecayMode(std::string_view text);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_OPTIMIZER_H
