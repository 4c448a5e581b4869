//===- EmulatedFunctions.cpp - Functions and types of emulated kernels ----===//
//
// Turns GPU functions into functions over plain pointers.
//
//===----------------------------------------------------------------------===//

#include "Emulated.h"

#include "neuroshard/Emulator/EmulatorABI.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

using namespace mlir;

namespace neuroshard {

/// NVVM's number of shared memory.
static constexpr int64_t kSharedSpace = 3;

//===----------------------------------------------------------------------===//
// Address spaces
//===----------------------------------------------------------------------===//

static bool isShared(Type type) {
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type))
    return pointer.getAddressSpace() == kSharedSpace;
  auto memref = dyn_cast<BaseMemRefType>(type);
  if (!memref)
    return false;
  if (auto space = dyn_cast_or_null<IntegerAttr>(memref.getMemorySpace()))
    return space.getInt() == kSharedSpace;
  auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(memref.getMemorySpace());
  return space && space.getValue() == gpu::AddressSpace::Workgroup;
}

static LogicalResult refuseShared(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    if (llvm::none_of(op->getResultTypes(), isShared))
      return WalkResult::advance();
    op->emitOpError("uses shared memory, which has no emulation");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Removes casts of a type to itself.
static void foldCasts(Operation *root) {
  root->walk([](Operation *op) {
    if (!isa<LLVM::AddrSpaceCastOp, memref::MemorySpaceCastOp>(op) ||
        op->getOperand(0).getType() != op->getResult(0).getType())
      return;
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  });
}

LogicalResult dropAddressSpaces(Operation *root) {
  if (failed(refuseShared(root)))
    return failure();
  AttrTypeReplacer replacer;
  replacer.addReplacement([](LLVM::LLVMPointerType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  replacer.addReplacement([](MemRefType type) -> std::optional<Type> {
    if (!type.getMemorySpace())
      return std::nullopt;
    return MemRefType::get(type.getShape(), type.getElementType(),
                           type.getLayout());
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  foldCasts(root);
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

LogicalResult dissolveGpuModule(ModuleOp module) {
  SmallVector<gpu::GPUModuleOp> gpuModules(module.getOps<gpu::GPUModuleOp>());
  if (gpuModules.size() != 1)
    return emitError(module.getLoc(),
                     "must have exactly one gpu.module to emulate, "
                     "got: ")
           << gpuModules.size();
  gpu::GPUModuleOp gpuModule = gpuModules.front();
  StringAttr ownName = gpuModule.getNameAttr();
  SymbolTable symbols(module);
  for (auto symbol : gpuModule.getOps<SymbolOpInterface>())
    if (symbol.getNameAttr() != ownName && symbols.lookup(symbol.getNameAttr()))
      return symbol->emitOpError("is also a symbol outside the gpu.module");
  auto &body = module.getBody()->getOperations();
  body.splice(gpuModule->getIterator(), gpuModule.getBody()->getOperations());
  gpuModule.erase();
  module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  return success();
}

/// Turns a memref argument into a bare pointer and, at the beginning of the
/// body, into the memref again.
static LogicalResult unpackMemRef(func::FuncOp func, BlockArgument argument) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type)
    return success();
  int64_t offset;
  SmallVector<int64_t> strides;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)) || offset != 0 ||
      llvm::is_contained(strides, ShapedType::kDynamic))
    return func.emitOpError("has an argument that is no bare pointer: a memref "
                            "must have a static shape and layout and offset 0, "
                            "got: ")
           << type;
  OpBuilder builder = OpBuilder::atBlockBegin(argument.getOwner());
  LLVMTypeConverter types(func.getContext());
  argument.setType(LLVM::LLVMPointerType::get(func.getContext()));
  Value descriptor = MemRefDescriptor::fromStaticShape(builder, func.getLoc(),
                                                       types, type, argument);
  auto cast = UnrealizedConversionCastOp::create(builder, func.getLoc(), type,
                                                 descriptor);
  Operation *first = descriptor.getDefiningOp();
  argument.replaceUsesWithIf(cast.getResult(0), [&](OpOperand &use) {
    return !isa<LLVM::InsertValueOp>(use.getOwner()) ||
           use.getOwner()->getBlock() != first->getBlock() ||
           !use.getOwner()->isBeforeInBlock(cast);
  });
  return success();
}

/// Tells launches how many bytes each parameter has (EmulatorABI.h).
static LogicalResult addParameterBytes(func::FuncOp func) {
  SmallVector<int32_t> bytes;
  DataLayout layout = DataLayout::closest(func);
  for (Type type : func.getArgumentTypes()) {
    if (!isa<LLVM::LLVMPointerType>(type) && !type.isIntOrIndexOrFloat())
      return func.emitOpError("has a parameter that a launch cannot copy: ")
             << type;
    bytes.push_back(static_cast<int32_t>(layout.getTypeSize(type)));
  }
  bytes.push_back(0);
  OpBuilder b(func);
  auto values = b.getI32TensorAttr(bytes);
  LLVM::GlobalOp::create(
      b, func.getLoc(), LLVM::LLVMArrayType::get(b.getI32Type(), bytes.size()),
      /*isConstant=*/true, LLVM::Linkage::External,
      (NSE_PARAMETERS_PREFIX + func.getName()).str(), values);
  return success();
}

static LogicalResult convertFunction(gpu::GPUFuncOp gpuFunc) {
  if (gpuFunc.getNumWorkgroupAttributions() > 0 ||
      !gpuFunc.getPrivateAttributions().empty())
    return gpuFunc.emitOpError(
        "has workgroup or private buffers, which have no emulation");
  OpBuilder builder(gpuFunc);
  auto func = func::FuncOp::create(builder, gpuFunc.getLoc(), gpuFunc.getName(),
                                   gpuFunc.getFunctionType());
  func.setVisibility(gpuFunc.isKernel() ? SymbolTable::Visibility::Public
                                        : SymbolTable::Visibility::Private);
  func.getBody().takeBody(gpuFunc.getBody());
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    for (NamedAttribute attribute : FunctionOpInterface(gpuFunc).getArgAttrs(i))
      if (!isa_and_nonnull<NVVM::NVVMDialect>(attribute.getNameDialect()))
        func.setArgAttr(i, attribute.getName(), attribute.getValue());
  func.walk([](gpu::ReturnOp op) {
    OpBuilder atReturn(op);
    func::ReturnOp::create(atReturn, op.getLoc(), op.getOperands());
    op.erase();
  });
  gpuFunc.erase();
  for (BlockArgument argument : func.getArguments())
    if (failed(unpackMemRef(func, argument)))
      return failure();
  func.setFunctionType(builder.getFunctionType(
      func.getBody().getArgumentTypes(), func.getFunctionType().getResults()));
  return func.isPublic() ? addParameterBytes(func) : success();
}

LogicalResult convertGpuFunctions(ModuleOp module) {
  SmallVector<gpu::GPUFuncOp> functions(module.getOps<gpu::GPUFuncOp>());
  for (gpu::GPUFuncOp gpuFunc : functions)
    if (failed(convertFunction(gpuFunc)))
      return failure();
  return success();
}

} // namespace neuroshard
