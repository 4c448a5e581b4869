//===- PlannerEnums.h - Enumerations of the dialect and the planner -------===//
//
// Both sides have the same enumerators in the same order; the assertions hold
// them to it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNERENUMS_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNERENUMS_H

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <optional>

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

inline Pooling toPlanner(ir::Pooling value) {
  return static_cast<Pooling>(value);
}
inline OptimizerKind toPlanner(ir::OptimizerKind value) {
  return static_cast<OptimizerKind>(value);
}
inline OptimizerSemantics toPlanner(ir::OptimizerSemantics value) {
  return static_cast<OptimizerSemantics>(value);
}
inline Tier toPlanner(ir::MemoryTier value) { return static_cast<Tier>(value); }

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

/// f32, f16 and bf16; the dialect's verifiers allow no other element type.
inline ElementType elementTypeOf(mlir::Type type) {
  if (type.isF16())
    return ElementType::F16;
  return type.isBF16() ? ElementType::BF16 : ElementType::F32;
}

inline mlir::Type typeOf(ElementType type, mlir::MLIRContext *context) {
  switch (type) {
  case ElementType::F32:
    break;
  case ElementType::F16:
    return mlir::Float16Type::get(context);
  case ElementType::BF16:
    return mlir::BFloat16Type::get(context);
  }
  return mlir::Float32Type::get(context);
}

inline llvm::StringRef nameOf(std::string_view text) {
  return {text.data(), text.size()};
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_PLANNERENUMS_H
