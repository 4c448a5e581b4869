//===- Price.cpp - Pass: say what a plan costs ----------------------------===//

#include "neuroshard/Transforms/PlanPasses.h"

#include "neuroshard/Dialect/CheckedOptions.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/PlanPrices.h"

namespace neuroshard {
#define GEN_PASS_DEF_PRICE
#include "neuroshard/Transforms/PlanPasses.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;

namespace {
struct PricePass
    : public CheckedOptions<neuroshard::impl::PriceBase<PricePass>> {
  using CheckedOptions::CheckedOptions;

  void runOnOperation() override {
    FailureOr<ir::PlanOp> found = requirePlan(getOperation(), plan);
    if (failed(found))
      return signalPassFailure();
    FailureOr<std::vector<Price>> prices = pricePlan(*found, costModel);
    if (failed(prices))
      return signalPassFailure();
    emitPrices(*prices);
    markAllAnalysesPreserved();
  }
};
} // namespace
