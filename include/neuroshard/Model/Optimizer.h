//===- Optimizer.h - Optimizers, their states and norms ---------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_OPTIMIZER_H
#define NEUROSHARD_MODEL_OPTIMIZER_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace neuroshard {

enum class OptimizerKind { SGD, Adagrad, RowWiseAdagrad, Adam };

/// State of a row-wise optimizer when a table is split by columns.
/// Exact: one state per row, as without sharding (column owners exchange one
/// squared norm per unique row). PerShard: one per shard, which trains
/// differently.
enum class OptimizerSemantics { Exact, PerShard };

/// An optimizer and its hyperparameters; those it does not use stay at their
/// defaults.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::SGD;
  double eps = 1e-8;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double initialAccumulator = 0;
  double weightDecay = 0;

  bool operator==(const Optimizer &) const = default;
};

/// How many f32 arrays of state an optimizer keeps with one value per element
/// of the table, and with one value per row.
struct OptimizerStates {
  int perElement = 0;
  int perRow = 0;

  constexpr int count() const { return perElement + perRow; }
  bool operator==(const OptimizerStates &) const = default;
};

/// The states of every optimizer.
constexpr OptimizerStates optimizerStates(OptimizerKind kind) {
  switch (kind) {
  case OptimizerKind::SGD:
    return {};
  case OptimizerKind::Adagrad:
    return {.perElement = 1};
  case OptimizerKind::RowWiseAdagrad:
    return {.perRow = 1};
  case OptimizerKind::Adam:
    return {.perElement = 2};
  }
  return {};
}

/// Do the owners of a table's rows exchange squared norms of gradients, so that
/// its update takes two phases? One shard cut by columns decides it for all
/// shards of its table, also for those that hold whole rows: the exchange is
/// one per table. `columnSplit`: some shard of the table holds only a part of
/// its columns.
constexpr bool needsNormExchange(OptimizerKind kind,
                                 OptimizerSemantics semantics,
                                 bool columnSplit) {
  return columnSplit && semantics == OptimizerSemantics::Exact &&
         optimizerStates(kind).perRow > 0;
}

std::string_view toString(OptimizerKind kind);
std::string_view toString(OptimizerSemantics semantics);
std::optional<OptimizerKind> parseOptimizerKind(std::string_view text);
std::optional<OptimizerSemantics>
parseOptimizerSemantics(std::string_view text);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_OPTIMIZER_H
