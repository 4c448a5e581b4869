//===- ModelEnums.h - Enumerations of the dialect and of Model -*- C++ -*-===//
//
// Both sides have the same enumerators in the same order; the assertions hold
// them to it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_DIALECT_MODELENUMS_H
#define NEUROSHARD_DIALECT_MODELENUMS_H

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/Target.h"
#include "neuroshard/Model/Types.h"

namespace neuroshard {

template <typename To, typename From> constexpr bool same(To to, From from) {
  return static_cast<int>(to) == static_cast<int>(from);
}

static_assert(same(Pooling::Sum, ir::Pooling::Sum) &&
              same(Pooling::Mean, ir::Pooling::Mean) &&
              same(Pooling::None, ir::Pooling::Unpooled));
static_assert(same(OptimizerKind::SGD, ir::OptimizerKind::SGD) &&
              same(OptimizerKind::Adagrad, ir::OptimizerKind::Adagrad) &&
              same(OptimizerKind::RowWiseAdagrad,
                   ir::OptimizerKind::RowWiseAdagrad) &&
              same(OptimizerKind::Adam, ir::OptimizerKind::Adam));
static_assert(same(OptimizerSemantics::Exact, ir::OptimizerSemantics::Exact) &&
              same(OptimizerSemantics::PerShard,
                   ir::OptimizerSemantics::PerShard));
static_assert(same(Tier::Hbm, ir::MemoryTier::Hbm) &&
              same(Tier::Dram, ir::MemoryTier::Dram));

inline Pooling toModel(ir::Pooling value) {
  return static_cast<Pooling>(value);
}
inline OptimizerKind toModel(ir::OptimizerKind value) {
  return static_cast<OptimizerKind>(value);
}
inline OptimizerSemantics toModel(ir::OptimizerSemantics value) {
  return static_cast<OptimizerSemantics>(value);
}
inline Tier toModel(ir::MemoryTier value) { return static_cast<Tier>(value); }

inline Optimizer toModel(ir::OptimizerAttr optimizer) {
  return {toModel(optimizer.getKind()), optimizer.epsilon(),
          optimizer.firstBeta(),        optimizer.secondBeta(),
          optimizer.accumulatorStart(), optimizer.decay()};
}

inline ir::Pooling toIR(Pooling value) {
  return static_cast<ir::Pooling>(value);
}
inline ir::OptimizerKind toIR(OptimizerKind value) {
  return static_cast<ir::OptimizerKind>(value);
}
inline ir::OptimizerSemantics toIR(OptimizerSemantics value) {
  return static_cast<ir::OptimizerSemantics>(value);
}
inline ir::MemoryTier toIR(Tier value) {
  return static_cast<ir::MemoryTier>(value);
}

} // namespace neuroshard

#endif // NEUROSHARD_DIALECT_MODELENUMS_H
