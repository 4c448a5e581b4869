//===- ProtectArguments.cpp - Callers' tensors are read-only --------------===//
//
// Public functions only: inside the module One-Shot Bufferize sees all calls
// and decides itself.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Native/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_PROTECTARGUMENTS
#include "neuroshard/Conversion/Native/Passes.h.inc"

static void protectArguments(func::FuncOp func) {
  StringRef name = bufferization::BufferizationDialect::kWritableAttrName;
  auto notWritable = BoolAttr::get(func.getContext(), false);
  for (BlockArgument argument : func.getArguments())
    if (isa<TensorType>(argument.getType()) &&
        !func.getArgAttr(argument.getArgNumber(), name))
      func.setArgAttr(argument.getArgNumber(), name, notWritable);
}

namespace {
struct ProtectArguments : impl::ProtectArgumentsBase<ProtectArguments> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func.isPublic() && !func.isExternal())
        protectArguments(func);
  }
};
} // namespace

} // namespace neuroshard
