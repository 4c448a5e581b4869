//===- Raising.cpp - Lookups of other dialects, on request ----------------===//

#include "Raising.h"

#include "neuroshard/Conversion/RunPasses.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Serialization/Files.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/WeightsFile.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace neuroshard {

/// Lets MLIR's diagnostics show what was missed.
static LogicalResult showMissed(MLIRContext &context) {
  remark::RemarkCategories shown;
  shown.missed = "neuroshard-raise-lookups";
  return remark::enableOptimizationRemarks(
      context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(),
      shown, /*printAsEmitRemarks=*/true);
}

/// An error for the first op of a dialect that is not linked here, but rather
/// not for a conversion of types between it and raised lookups.
static LogicalResult checkRest(ModuleOp module) {
  Operation *unknown = nullptr;
  module.walk([&](Operation *op) {
    if (op->isRegistered())
      return WalkResult::advance();
    bool isConversion = op->getName().getDialectNamespace() == "torch_c";
    if (!unknown || !isConversion)
      unknown = op;
    return isConversion ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (!unknown)
    return success();
  return emitError(unknown->getLoc())
         << "'" << printable(unknown->getName().getStringRef())
         << "' is not an op that can be compiled: only lookups are raised; "
            "lower the rest of its dialect first, see docs/raising.md";
}

LogicalResult raiseLookups(ModuleOp module, const RaiseLookupsOptions &raising,
                           const CompileOptions &options) {
  if (failed(showMissed(*module.getContext())))
    return mlir::failure();
  if (failed(runPasses(
          module, options.native.crashReproducer,
          [&](OpPassManager &pm) { pm.addPass(createRaiseLookups(raising)); })))
    return mlir::failure();
  return checkRest(module);
}

static LogicalResult refuseWeightsFile(const std::string &reason,
                                       Location loc) {
  return emitError(loc) << "--weights-file: " << printable(reason);
}

LogicalResult checkWeightsFile(const CompileOptions &options, Location loc) {
  const std::string &path = options.raise.weightsFile;
  if (path.empty())
    return success();
  if (std::string reason = whyNotWeightsFile(path); !reason.empty())
    return refuseWeightsFile(reason, loc);
  return success();
}

LogicalResult writeWeightsFile(const CompileOptions &options, StringRef bytes,
                               Location loc) {
  Expected<void> written =
      writeFile(options.raise.weightsFile, {bytes.data(), bytes.size()});
  return written ? success()
                 : refuseWeightsFile(toString(written.error()), loc);
}

} // namespace neuroshard
