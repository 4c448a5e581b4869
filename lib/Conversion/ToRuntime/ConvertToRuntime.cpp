//===- ConvertToRuntime.cpp - Partitioned IR to one program ---------------===//
//
// Picks the program, lowers the functions, emits the kernels and their table,
// and drops what only described the other programs.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Passes.h"

#include "CopyResults.h"
#include "LowerSteps.h"
#include "ProgramSpec.h"
#include "RuntimeCalls.h"

#include "neuroshard/Conversion/Grid.h"
#include "neuroshard/Conversion/Jagged/Jagged.h"
#include "neuroshard/Conversion/Native/Pipeline.h"
#include "neuroshard/Dialect/CheckedOptions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_CONVERTTORUNTIME
#include "neuroshard/Conversion/Passes.h.inc"

static void addHandleConversions(TypeConverter &converter) {
  auto toPointer = [](Type type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  };
  converter.addConversion([=](ir::DeviceType type) { return toPointer(type); });
  converter.addConversion([=](ir::RoutedType type) { return toPointer(type); });
  converter.addConversion(
      [=](ir::PartialsType type) { return toPointer(type); });
}

static void eraseDeclarations(ModuleOp module) {
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (isa<ir::TopologyOp, ir::TableOp, ir::PlanOp, ir::ExchangeOp,
            ir::DeviceProgramOp>(op) ||
        isUnusedGrid(op))
      op.erase();
}

namespace {
struct ConvertToRuntime
    : CheckedOptions<impl::ConvertToRuntimeBase<ConvertToRuntime>> {
  using CheckedOptions::CheckedOptions;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<ir::DeviceProgramOp> kept = findProgram(module, program);
    if (failed(kept))
      return signalPassFailure();
    ProgramSpec spec = describeProgram(*kept);
    LoweredExchanges exchanges;
    for (ir::ExchangeOp exchange : module.getOps<ir::ExchangeOp>())
      exchanges.try_emplace(
          exchange.getSymNameAttr(),
          LoweredExchange{static_cast<int64_t>(exchanges.size()),
                          exchange.getResults()});
    eraseDeclarations(module);
    if (failed(lowerFunctions(exchanges)))
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>()) {
      copyResults(function);
      layOutArguments(function);
    }
    if (failed(buildProgramTable(module, spec)))
      signalPassFailure();
  }

  LogicalResult lowerFunctions(const LoweredExchanges &exchanges) {
    TypeConverter converter;
    addJaggedTypeConversions(converter);
    addHandleConversions(converter);
    RewritePatternSet patterns(&getContext());
    ConversionTarget target(getContext());
    populateStructuralPatterns(converter, patterns, target,
                               kDeviceArgumentAttr);
    populateJaggedPatterns(converter, patterns);
    populateStepPatterns(converter, exchanges, patterns);
    return applyFullConversion(getOperation(), target, std::move(patterns));
  }
};
} // namespace

} // namespace neuroshard
