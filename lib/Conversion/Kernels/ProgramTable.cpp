//===- ProgramTable.cpp - The table of a device program's kernels ---------===//
//
// The globals have the layout of nsrt_slot_entry, nsrt_lookup_entry and
// nsrt_program. Kernels are still func.func here; func.constant names them
// until the functions themselves become LLVM's.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Kernels/ProgramTable.h"

#include "neuroshard/Conversion/Kernels/HostKernels.h"
#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Runtime/KernelABI.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace neuroshard {

namespace {
/// The values of one C struct, in the order of its fields.
class StructBuilder {
public:
  StructBuilder(ImplicitLocOpBuilder &b, LLVM::LLVMStructType type)
      : b(b), value(LLVM::ZeroOp::create(b, type)) {}

  void integer(int64_t number) {
    set(LLVM::ConstantOp::create(b, b.getI32Type(),
                                 b.getI32IntegerAttr(number)));
  }
  void kernel(func::FuncOp func) {
    Value pointer = LLVM::ZeroOp::create(b, pointerType());
    if (func) {
      Value constant =
          func::ConstantOp::create(b, func.getFunctionType(),
                                   FlatSymbolRefAttr::get(func.getNameAttr()));
      pointer = UnrealizedConversionCastOp::create(b, pointerType(), constant)
                    .getResult(0);
    }
    set(pointer);
  }
  void address(LLVM::GlobalOp global) {
    if (global)
      return set(LLVM::AddressOfOp::create(b, global));
    set(LLVM::ZeroOp::create(b, pointerType()));
  }

  Value get() const { return value; }

private:
  Type pointerType() { return LLVM::LLVMPointerType::get(b.getContext()); }
  void set(Value field) {
    value = LLVM::InsertValueOp::create(b, value, field, position++);
  }

  ImplicitLocOpBuilder &b;
  Value value;
  int64_t position = 0;
};

struct SlotKernels {
  func::FuncOp update, reduce, apply;
};

struct LookupKernels {
  func::FuncOp forward, weightGradient;
};
} // namespace

/// A struct of some i32 fields, then some pointers.
static LLVM::LLVMStructType makeStructType(MLIRContext *context, int integers,
                                           int pointers) {
  SmallVector<Type> fields(integers, IntegerType::get(context, 32));
  fields.append(pointers, LLVM::LLVMPointerType::get(context));
  return LLVM::LLVMStructType::getLiteral(context, fields);
}

static FailureOr<SlotKernels> makeKernels(ModuleOp module,
                                          const SlotSpec &slot) {
  SlotKernels kernels;
  if (!slot.optimizer)
    return kernels;
  KernelSpec spec;
  spec.dim = slot.dim;
  spec.element = slot.element;
  spec.optimizer = *slot.optimizer;
  spec.tableDim = slot.tableDim;
  spec.weighted = slot.weighted;
  auto make = [&](KernelKind kind, func::FuncOp &result) -> LogicalResult {
    spec.kind = kind;
    FailureOr<func::FuncOp> kernel = getOrCreateKernel(module, spec);
    if (succeeded(kernel))
      result = *kernel;
    return kernel;
  };
  if (!slot.twoPhase) {
    if (failed(make(KernelKind::Update, kernels.update)))
      return failure();
    return kernels;
  }
  if (failed(make(KernelKind::Reduce, kernels.reduce)) ||
      failed(make(KernelKind::Apply, kernels.apply)))
    return failure();
  return kernels;
}

static FailureOr<LookupKernels> makeKernels(ModuleOp module,
                                            const ProgramSpec &program,
                                            const LookupSpec &lookup) {
  if (lookup.slot < 0 ||
      lookup.slot >= static_cast<int64_t>(program.slots.size()))
    return emitError(module.getLoc())
           << "lookup of slot " << lookup.slot << " in a program of "
           << program.slots.size() << " slots";
  const SlotSpec &slot = program.slots[lookup.slot];
  KernelSpec spec;
  spec.dim = slot.dim;
  spec.element = slot.element;
  spec.id = lookup.id;
  spec.pooled = lookup.pooled;
  spec.weighted = lookup.weighted;
  LookupKernels kernels;
  FailureOr<func::FuncOp> forward = getOrCreateKernel(module, spec);
  if (failed(forward))
    return failure();
  kernels.forward = *forward;
  if (!lookup.weighted)
    return kernels;
  spec.kind = KernelKind::WeightGradient;
  FailureOr<func::FuncOp> gradient = getOrCreateKernel(module, spec);
  if (failed(gradient))
    return failure();
  kernels.weightGradient = *gradient;
  return kernels;
}

static Value makeEntry(ImplicitLocOpBuilder &b, LLVM::LLVMStructType type,
                       const SlotSpec &slot, const SlotKernels &kernels) {
  StructBuilder entry(b, type);
  entry.integer(slot.dim);
  entry.integer(rowBytes(slot.dim, slot.element));
  OptimizerStates states =
      slot.optimizer ? optimizerStates(*slot.optimizer) : OptimizerStates();
  entry.integer(states.perElement);
  entry.integer(states.perRow);
  entry.integer(slot.weighted);
  entry.kernel(kernels.update);
  entry.kernel(kernels.reduce);
  entry.kernel(kernels.apply);
  return entry.get();
}

static Value makeEntry(ImplicitLocOpBuilder &b, LLVM::LLVMStructType type,
                       const LookupSpec &lookup, const LookupKernels &kernels) {
  StructBuilder entry(b, type);
  entry.integer(lookup.slot);
  entry.integer(lookup.id == IdType::I32 ? 4 : 8);
  entry.integer(lookup.pooled);
  entry.integer(lookup.weighted);
  entry.kernel(kernels.forward);
  entry.kernel(kernels.weightGradient);
  return entry.get();
}

/// A constant global whose value `emit` builds.
static LLVM::GlobalOp makeGlobal(ImplicitLocOpBuilder &b, Type type,
                                 LLVM::Linkage linkage, StringRef name,
                                 llvm::function_ref<Value()> emit) {
  auto global = LLVM::GlobalOp::create(b, type, /*isConstant=*/true, linkage,
                                       name, /*value=*/Attribute());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&global.getInitializerRegion());
  LLVM::ReturnOp::create(b, emit());
  return global;
}

/// A constant array with one struct per entry; null if there is none.
template <typename Entry, typename Kernels>
static LLVM::GlobalOp makeArray(ImplicitLocOpBuilder &b,
                                LLVM::LLVMStructType type, StringRef name,
                                const std::vector<Entry> &entries,
                                const std::vector<Kernels> &kernels) {
  if (entries.empty())
    return {};
  auto arrayType = LLVM::LLVMArrayType::get(type, entries.size());
  return makeGlobal(b, arrayType, LLVM::Linkage::Internal, name, [&] {
    Value array = LLVM::ZeroOp::create(b, arrayType);
    for (size_t i = 0; i != entries.size(); ++i)
      array = LLVM::InsertValueOp::create(
          b, array, makeEntry(b, type, entries[i], kernels[i]), i);
    return array;
  });
}

LogicalResult buildProgramTable(ModuleOp module, const ProgramSpec &program) {
  std::vector<SlotKernels> slotKernels;
  for (const SlotSpec &slot : program.slots) {
    FailureOr<SlotKernels> kernels = makeKernels(module, slot);
    if (failed(kernels))
      return failure();
    slotKernels.push_back(*kernels);
  }
  std::vector<LookupKernels> lookupKernels;
  for (const LookupSpec &lookup : program.lookups) {
    FailureOr<LookupKernels> kernels = makeKernels(module, program, lookup);
    if (failed(kernels))
      return failure();
    lookupKernels.push_back(*kernels);
  }

  MLIRContext *context = module.getContext();
  auto b = ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody());
  LLVM::GlobalOp slots =
      makeArray(b, makeStructType(context, /*integers=*/5, /*pointers=*/3),
                "neuroshard_slots", program.slots, slotKernels);
  LLVM::GlobalOp lookups =
      makeArray(b, makeStructType(context, /*integers=*/4, /*pointers=*/2),
                "neuroshard_lookups", program.lookups, lookupKernels);
  auto tableType = makeStructType(context, /*integers=*/4, /*pointers=*/2);
  makeGlobal(b, tableType, LLVM::Linkage::External, NSRT_PROGRAM_SYMBOL, [&] {
    StructBuilder table(b, tableType);
    table.integer(NSRT_PROGRAM_VERSION);
    table.integer(program.slots.size());
    table.integer(program.lookups.size());
    table.integer(0);
    table.address(slots);
    table.address(lookups);
    return table.get();
  });
  return success();
}

} // namespace neuroshard
