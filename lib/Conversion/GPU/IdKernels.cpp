//===- IdKernels.cpp - The GPU kernels on ids, from IdKernels.mlir --------===//
//
// The text is parsed, and calls of functions that it only declares become
// constants, fields and addresses of GpuKernelABI.h.
//
//===----------------------------------------------------------------------===//

#include "DeviceStruct.h"
#include "GpuKernels.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstddef>

using namespace mlir;

namespace neuroshard {

static constexpr llvm::StringLiteral kIdKernels =
#include "IdKernels.mlir.inc"
    ;

namespace {
struct AbiConstant {
  llvm::StringLiteral name;
  int64_t value;
};
struct AbiField {
  llvm::StringLiteral name;
  size_t offset, size;
};
struct AbiStruct {
  llvm::StringLiteral name;
  size_t size;
};
} // namespace

#define NSG_CONSTANT(name) {#name, name}
static constexpr AbiConstant kConstants[] = {
    NSG_CONSTANT(NSG_THREADS),  NSG_CONSTANT(NSG_EXPAND_ITEMS),
    NSG_CONSTANT(NSG_PIECE),    NSG_CONSTANT(NSG_POOLED),
    NSG_CONSTANT(NSG_MEAN),     NSG_CONSTANT(NSG_WEIGHTED),
    NSG_CONSTANT(NSG_FIXED),    NSG_CONSTANT(NSG_ID64),
    NSG_CONSTANT(NSG_UNSORTED),
};
#undef NSG_CONSTANT

#define NSG_FIELD(type, field)                                                 \
  {#type "." #field, offsetof(type, field), sizeof(type::field)}
static constexpr AbiField kFields[] = {
    NSG_FIELD(nsg_lookup_task, ids),
    NSG_FIELD(nsg_lookup_task, offsets),
    NSG_FIELD(nsg_lookup_task, sample_weights),
    NSG_FIELD(nsg_lookup_task, items),
    NSG_FIELD(nsg_lookup_task, rows),
    NSG_FIELD(nsg_lookup_task, row_begin),
    NSG_FIELD(nsg_lookup_task, pooling),
    NSG_FIELD(nsg_lookup_task, position_begin),
    NSG_FIELD(nsg_lookup_task, key_begin),
    NSG_FIELD(nsg_lookup_task, gradient_begin),
    NSG_FIELD(nsg_lookup_task, gradient_stride),
    NSG_FIELD(nsg_lookup_task, flags),
    NSG_FIELD(nsg_lookup_task, first_expand_block),
    NSG_FIELD(nsg_lookup_task, first_id),
    NSG_FIELD(nsg_lookup_task, first_piece),
    NSG_FIELD(nsg_lookup_task, num_pieces),
    NSG_FIELD(nsg_lookup_task, first_order_block),
    NSG_FIELD(nsg_positions, keys),
    NSG_FIELD(nsg_positions, gradient_offsets),
    NSG_FIELD(nsg_positions, factors),
    NSG_FIELD(nsg_positions, key_bytes),
    NSG_FIELD(nsg_pieces, order),
    NSG_FIELD(nsg_pieces, starts),
    NSG_FIELD(nsg_pieces, stride),
    NSG_FIELD(nsg_sorted, keys),
    NSG_FIELD(nsg_sorted, starts),
    NSG_FIELD(nsg_sorted, num_runs),
    NSG_FIELD(nsg_sorted, num_positions),
    NSG_FIELD(nsg_sorted, run_begin),
    NSG_FIELD(nsg_sorted, key_bytes),
    NSG_FIELD(nsg_slot, key_begin),
    NSG_FIELD(nsg_slot, key_end),
};
#undef NSG_FIELD

static constexpr AbiStruct kStructs[] = {
    {"nsg_lookup_task.at", sizeof(nsg_lookup_task)},
    {"nsg_slot.at", sizeof(nsg_slot)},
};

/// The entry of that name, or null.
template <typename T, size_t n>
static const T *findNamed(const T (&table)[n], StringRef name) {
  const T *found =
      llvm::find_if(table, [&](const T &entry) { return entry.name == name; });
  return found == std::end(table) ? nullptr : found;
}

static Value readField(ImplicitLocOpBuilder &b, const AbiField &field,
                       Value address, Type type) {
  DeviceStruct from(b, address);
  if (!type.isIndex())
    return from.load(field.offset, type);
  return field.size == sizeof(int32_t) ? from.index32(field.offset)
                                       : from.index(field.offset);
}

/// The value that replaces a call of a declared function; null if the header
/// has no such name.
static Value expandCall(func::CallOp call) {
  ImplicitLocOpBuilder b(call.getLoc(), call);
  Type type = call.getResult(0).getType();
  if (const AbiConstant *constant = findNamed(kConstants, call.getCallee()))
    return arith::ConstantOp::create(b,
                                     b.getIntegerAttr(type, constant->value));
  if (const AbiField *field = findNamed(kFields, call.getCallee()))
    return readField(b, *field, call.getOperand(0), type);
  if (const AbiStruct *found = findNamed(kStructs, call.getCallee()))
    return structAt(b, call.getOperand(0), found->size, call.getOperand(1))
        .getAddress();
  return nullptr;
}

/// Copies a function of the text, and those that it calls, into `module`.
static void copyFunction(gpu::GPUModuleOp text, StringRef name,
                         gpu::GPUModuleOp module) {
  if (module.lookupSymbol(name))
    return;
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Operation *copy = b.clone(*text.lookupSymbol(name));
  copy->walk([&](func::CallOp call) {
    auto callee = text.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee.isDeclaration())
      return copyFunction(text, call.getCallee(), module);
    Value value = expandCall(call);
    if (!value)
      llvm::report_fatal_error("GpuKernelABI.h has no " + call.getCallee());
    call.getResult(0).replaceAllUsesWith(value);
    call.erase();
  });
}

void createIdKernel(gpu::GPUModuleOp module, StringRef name) {
  ParserConfig config(module.getContext());
  OwningOpRef<ModuleOp> parsed =
      parseSourceString<ModuleOp>(kIdKernels, config, "IdKernels.mlir");
  if (!parsed)
    llvm::report_fatal_error("IdKernels.mlir is not valid");
  auto text = *parsed->getOps<gpu::GPUModuleOp>().begin();
  copyFunction(text, name, module);
  setLaunchBounds(module.lookupSymbol<gpu::GPUFuncOp>(name), kIdResidentBlocks);
}

} // namespace neuroshard
