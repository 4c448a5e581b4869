//===- my-opt.cpp - An opt tool with a pass that reads plans --------------===//
//
// All passes of NeuroShard and MLIR, one of its own, and a cost model.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/CostModel/Plugin.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/InitAll.h"
#include "neuroshard/Transforms/CostModelPluginOption.h"
#include "neuroshard/Transforms/FindPlan.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#include <map>

using namespace mlir;
using namespace neuroshard;

namespace {

/// Says how many numbers each device holds.
struct CountNumbers : PassWrapper<CountNumbers, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountNumbers)

  StringRef getArgument() const final { return "my-count-numbers"; }
  StringRef getDescription() const final {
    return "Say how many numbers of tables each device holds";
  }

  void runOnOperation() final {
    FailureOr<ir::PlanOp> plan = requirePlan(getOperation(), /*name=*/"");
    if (failed(plan))
      return signalPassFailure();
    std::map<int64_t, int64_t> numbers;
    for (auto shard : plan->getOps<ir::ShardOp>())
      for (int64_t device : shard.getDevices())
        numbers[device] += shard.getNumRows() * shard.getWidth();
    for (auto [device, count] : numbers)
      plan->emitRemark() << "device " << device << " holds " << count
                         << " numbers";
  }
};

} // namespace

int main(int argc, char **argv) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  addCostModelPluginOption();
  PassRegistration<CountNumbers>();
  auto registered = registerCostModel(
      "mine", [](const Topology &) { return makeRooflineModel(); });
  if (!registered)
    llvm::report_fatal_error(toString(registered.error()).c_str());
  return asMainReturnCode(
      MlirOptMain(argc, argv, "My optimizer driver\n", registry));
}
