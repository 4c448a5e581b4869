//===- InvokeWrappers.cpp - Uniform entry points of host functions --------===//
//
// The wrappers are made before functions become LLVM's, while the types of
// arguments and results still say what they are; casts between a memref and
// its descriptor vanish in the conversion.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Native/Passes.h"
#include "neuroshard/Conversion/Native/Pipeline.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_INVOKEWRAPPERS
#include "neuroshard/Conversion/Native/Passes.h.inc"

namespace {
/// Writes the body of one wrapper.
class WrapperBuilder {
public:
  WrapperBuilder(func::FuncOp func, const LLVMTypeConverter &types)
      : func(func), types(types), b(func.getLoc(), func.getContext()),
        pointer(LLVM::LLVMPointerType::get(func.getContext())) {}

  LogicalResult build();

private:
  /// args[position].
  Value loadPointer(Value args, unsigned position) {
    Value address = LLVM::GEPOp::create(
        b, pointer, pointer, args,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(position)});
    return LLVM::LoadOp::create(b, pointer, address);
  }
  Value cast(Value value, Type type) {
    if (value.getType() == type)
      return value;
    return UnrealizedConversionCastOp::create(b, type, value).getResult(0);
  }
  LogicalResult convertTypes(ArrayRef<Type> from, SmallVector<Type> &to);
  void storeResults(Value target, ValueRange results);

  func::FuncOp func;
  const LLVMTypeConverter &types;
  ImplicitLocOpBuilder b;
  Type pointer;
  SmallVector<Type> argumentTypes, resultTypes;
};
} // namespace

LogicalResult WrapperBuilder::convertTypes(ArrayRef<Type> from,
                                           SmallVector<Type> &to) {
  for (Type type : from) {
    Type converted = types.convertType(type);
    if (!converted)
      return func.emitError()
             << "public function '" << printable(func.getName())
             << "' has a type that host code cannot pass: " << type;
    to.push_back(converted);
  }
  return success();
}

void WrapperBuilder::storeResults(Value target, ValueRange results) {
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), resultTypes);
  for (auto [i, result] : llvm::enumerate(results)) {
    Value address =
        LLVM::GEPOp::create(b, pointer, type, target,
                            ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
    LLVM::StoreOp::create(b, cast(result, resultTypes[i]), address);
  }
}

LogicalResult WrapperBuilder::build() {
  if (failed(convertTypes(func.getArgumentTypes(), argumentTypes)) ||
      failed(convertTypes(func.getResultTypes(), resultTypes)))
    return failure();

  b.setInsertionPointAfter(func);
  auto none = LLVM::LLVMVoidType::get(b.getContext());
  auto wrapper =
      LLVM::LLVMFuncOp::create(b, (NSRT_INVOKE_PREFIX + func.getName()).str(),
                               LLVM::LLVMFunctionType::get(none, {pointer}));
  Block *entry = wrapper.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Value args = entry->getArgument(0);
  unsigned offset = resultTypes.empty() ? 0 : 1;

  SmallVector<Value> operands;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    Value operand = loadPointer(args, offset + i);
    if (!func.getArgAttr(i, kDeviceArgumentAttr))
      operand = LLVM::LoadOp::create(b, argumentTypes[i], operand);
    operands.push_back(cast(operand, type));
  }
  auto call = func::CallOp::create(b, func, operands);
  if (!resultTypes.empty())
    storeResults(loadPointer(args, 0), call.getResults());
  LLVM::ReturnOp::create(b, ValueRange());
  return success();
}

namespace {
struct InvokeWrappers : impl::InvokeWrappersBase<InvokeWrappers> {
  void runOnOperation() override {
    LLVMTypeConverter types(&getContext());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp func : functions)
      if (func.isPublic() && !func.isExternal() &&
          failed(WrapperBuilder(func, types).build()))
        return signalPassFailure();
  }
};
} // namespace

} // namespace neuroshard
