//===- VerifyPlanned.cpp - Invariants of the planned level ----------------===//

#include "Levels.h"
#include "PlacedTables.h"
#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Transforms/EmitDiagnostics.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/PlannerConversion.h"

#include <limits>

namespace neuroshard {
#define GEN_PASS_DEF_VERIFYPLANNED
#include "neuroshard/Transforms/Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;

namespace {

/// Memory that no plan exceeds.
void removeMemoryLimits(Topology &topology) {
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  for (Device &device : topology.devices)
    device.memoryBytes = kUnlimited;
  for (Host &host : topology.hosts) {
    host.memoryBytes = kUnlimited;
    host.disk.bytes = 0;
  }
}

struct VerifyPlanned
    : CheckedOptions<neuroshard::impl::VerifyPlannedBase<VerifyPlanned>> {
  using CheckedOptions::CheckedOptions;

  LogicalResult verifyByPlanner(ir::PlanOp op) {
    FailureOr<ShardingProblem> problem = problemFromIR(op);
    FailureOr<ShardingPlan> written = planFromIR(op);
    if (failed(problem) || failed(written))
      return mlir::failure();
    if (!checkMemory)
      removeMemoryLimits(problem->topology);
    Diagnostics errors = neuroshard::verify(*written, *problem);
    return errors.empty() ? success() : emitDiagnostics(op.getLoc(), errors);
  }

  LogicalResult verify() {
    auto isLater = [](Operation *op) {
      return isSharded(op) || isPartitioned(op);
    };
    if (failed(verifyLevel(getOperation(), "planned", isLater,
                           "; neuroshard-to-planned, neuroshard-to-sharded and "
                           "neuroshard-to-partitioned begin with one of the "
                           "logical or the planned level")))
      return mlir::failure();
    FailureOr<ir::PlanOp> op = requirePlan(getOperation(), plan);
    if (failed(op) || failed(PlacedTables::of(*op)))
      return mlir::failure();
    return verifyByPlanner(*op);
  }

  void runOnOperation() override {
    if (failed(verify()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
