//===- TextKernels.cpp - The GPU kernels that are written as MLIR ---------===//
//
// IdKernels.mlir, RouteKernels.mlir, ScaledKernels.mlir and PackKernels.mlir
// are parsed. Calls of functions that none of them defines become constants,
// fields and addresses of GpuKernelABI.h.
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
#include <type_traits>

using namespace mlir;

namespace neuroshard {

static constexpr llvm::StringLiteral kTexts[] = {
#include "IdKernels.mlir.inc"
    ,
#include "RouteKernels.mlir.inc"
    ,
#include "ScaledKernels.mlir.inc"
    ,
#include "PackKernels.mlir.inc"
};

namespace {
struct AbiConstant {
  llvm::StringLiteral name;
  int64_t value;
};
struct AbiField {
  llvm::StringLiteral name;
  size_t offset, size;
  bool isStruct;
};
struct AbiStruct {
  llvm::StringLiteral name;
  size_t size;
};
} // namespace

#define NSG_CONSTANT(name) {#name, name}
static constexpr AbiConstant kConstants[] = {
    NSG_CONSTANT(NSG_THREADS),
    NSG_CONSTANT(NSG_EXPAND_ITEMS),
    NSG_CONSTANT(NSG_WARP),
    NSG_CONSTANT(NSG_POOLED),
    NSG_CONSTANT(NSG_MEAN),
    NSG_CONSTANT(NSG_WEIGHTED),
    NSG_CONSTANT(NSG_FIXED),
    NSG_CONSTANT(NSG_ID64),
    NSG_CONSTANT(NSG_PACKED_ID64),
    NSG_CONSTANT(NSG_F32),
    NSG_CONSTANT(NSG_F16),
    NSG_CONSTANT(NSG_MOVE_UNITS),
    NSG_CONSTANT(NSG_BAD_ID_POSITION_BITS),
    NSG_CONSTANT(NSG_INT8),
    NSG_CONSTANT(NSG_SCALED_ROWS),
};
#undef NSG_CONSTANT

#define NSG_FIELD(type, field)                                                 \
  {#type "." #field, offsetof(type, field), sizeof(type::field),               \
   std::is_class_v<decltype(type::field)>}
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
    NSG_FIELD(nsg_lookup_task, padding),
    NSG_FIELD(nsg_positions, keys),
    NSG_FIELD(nsg_positions, gradient_offsets),
    NSG_FIELD(nsg_positions, factors),
    NSG_FIELD(nsg_positions, key_bytes),
    NSG_FIELD(nsg_sorted, keys),
    NSG_FIELD(nsg_sorted, starts),
    NSG_FIELD(nsg_sorted, order),
    NSG_FIELD(nsg_sorted, num_runs),
    NSG_FIELD(nsg_sorted, num_positions),
    NSG_FIELD(nsg_sorted, run_begin),
    NSG_FIELD(nsg_sorted, key_bytes),
    NSG_FIELD(nsg_cached_part, places),
    NSG_FIELD(nsg_cached_part, position_begin),
    NSG_FIELD(nsg_cached_part, position_end),
    NSG_FIELD(nsg_cached_part, key_begin),
    NSG_FIELD(nsg_cached_part, id_bytes),
    NSG_FIELD(nsg_slot, key_begin),
    NSG_FIELD(nsg_slot, key_end),
    NSG_FIELD(nsg_rows, first),
    NSG_FIELD(nsg_rows, stride),
    NSG_FIELD(nsg_rows, scale),
    NSG_FIELD(nsg_move, source),
    NSG_FIELD(nsg_move, target),
    NSG_FIELD(nsg_move, source_places),
    NSG_FIELD(nsg_move, target_places),
    NSG_FIELD(nsg_move, first_place),
    NSG_FIELD(nsg_move, addends),
    NSG_FIELD(nsg_move, divisors),
    NSG_FIELD(nsg_move, rows),
    NSG_FIELD(nsg_move, width),
    NSG_FIELD(nsg_move, unit_bytes),
    NSG_FIELD(nsg_move, num_addends),
    NSG_FIELD(nsg_move, source_type),
    NSG_FIELD(nsg_move, target_type),
    NSG_FIELD(nsg_move, scale),
    NSG_FIELD(nsg_move, first_block),
    NSG_FIELD(nsg_bags, lengths),
    NSG_FIELD(nsg_bags, offsets),
    NSG_FIELD(nsg_bags, bags),
    NSG_FIELD(nsg_bags, total),
    NSG_FIELD(nsg_bucket, ids),
    NSG_FIELD(nsg_bucket, offsets),
    NSG_FIELD(nsg_bucket, sample_weights),
    NSG_FIELD(nsg_bucket, num_ids),
    NSG_FIELD(nsg_bucket, bags),
    NSG_FIELD(nsg_bucket, row_begin),
    NSG_FIELD(nsg_bucket, rows),
    NSG_FIELD(nsg_bucket, padding),
    NSG_FIELD(nsg_bucket, checked_rows),
    NSG_FIELD(nsg_bucket, lookup),
    NSG_FIELD(nsg_bucket, lengths),
    NSG_FIELD(nsg_bucket, bag_counts),
    NSG_FIELD(nsg_bucket, first),
    NSG_FIELD(nsg_bucket, packed_ids),
    NSG_FIELD(nsg_bucket, packed_weights),
    NSG_FIELD(nsg_bucket, places),
    NSG_FIELD(nsg_bucket, flags),
    NSG_FIELD(nsg_bucket, lanes),
    NSG_FIELD(nsg_bucket, first_block),
};
#undef NSG_FIELD

static constexpr AbiStruct kStructs[] = {
    {"nsg_lookup_task.at", sizeof(nsg_lookup_task)},
    {"nsg_slot.at", sizeof(nsg_slot)},
    {"nsg_cached_part.at", sizeof(nsg_cached_part)},
    {"nsg_rows.at", sizeof(nsg_rows)},
    {"nsg_move.at", sizeof(nsg_move)},
    {"nsg_bags.at", sizeof(nsg_bags)},
    {"nsg_bucket.at", sizeof(nsg_bucket)},
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
  if (field.isStruct)
    return from.inner(field.offset).getAddress();
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

namespace {
/// All texts, parsed.
class KernelTexts {
public:
  explicit KernelTexts(MLIRContext *context) {
    for (llvm::StringLiteral text : kTexts) {
      parsed.push_back(
          parseSourceString<ModuleOp>(text, ParserConfig(context)));
      if (!parsed.back())
        llvm::report_fatal_error("a text of GPU kernels is not valid");
    }
  }

  /// The kernel, or the function with a body, of that name; or null.
  Operation *find(StringRef name) {
    for (OwningOpRef<ModuleOp> &text : parsed)
      for (auto module : text->getOps<gpu::GPUModuleOp>()) {
        Operation *found = module.lookupSymbol(name);
        auto function = dyn_cast_or_null<func::FuncOp>(found);
        if (found && !(function && function.isDeclaration()))
          return found;
      }
    return nullptr;
  }

  /// Copies a function, and those that it calls, into `module`.
  void copy(StringRef name, gpu::GPUModuleOp module) {
    if (module.lookupSymbol(name))
      return;
    OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
    Operation *copied = b.clone(*find(name));
    copied->walk([&](func::CallOp call) {
      if (find(call.getCallee()))
        return copy(call.getCallee(), module);
      Value value = expandCall(call);
      if (!value)
        llvm::report_fatal_error("GpuKernelABI.h has no " + call.getCallee());
      call.getResult(0).replaceAllUsesWith(value);
      call.erase();
    });
  }

private:
  SmallVector<OwningOpRef<ModuleOp>> parsed;
};
} // namespace

void createTextKernels(gpu::GPUModuleOp module, ArrayRef<StringRef> names) {
  KernelTexts texts(module.getContext());
  for (StringRef name : names) {
    texts.copy(name, module);
    setLaunchBounds(module.lookupSymbol<gpu::GPUFuncOp>(name),
                    name == "nsg_move_scaled_rows" ? kScaledResidentBlocks
                                                   : kIdResidentBlocks);
  }
}

} // namespace neuroshard
