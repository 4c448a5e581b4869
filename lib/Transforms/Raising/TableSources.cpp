//===- TableSources.cpp - Arguments and constants with table rows ---------===//

#include "TableSources.h"
#include "Found/Values.h"
#include "TorchTypes.h"

#include "neuroshard/Support/Printable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

RankedTensorType neuroshard::raising::builtinTensor(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor;
  return builtinOfTorch(type);
}

/// Whether the op gives the tensor that it takes, in another type.
static bool isCast(Operation *op) {
  return isa<tensor::CastOp>(op) || isTorchCast(op);
}

/// Whether the op constantly gives the value of its attribute `value`.
static bool isConstant(Operation *op) {
  llvm::StringRef name = op->getName().getStringRef();
  return name == "arith.constant" || name == "stablehlo.constant" ||
         name == "torch.vtensor.literal";
}

static bool isGlobalLoad(Operation *op) {
  return isa<ml_program::GlobalLoadOp, ml_program::GlobalLoadConstOp,
             memref::GetGlobalOp>(op);
}

/// Whether the op makes a tensor of the buffer that it takes.
static bool isToTensor(Operation *op) {
  return isa<bufferization::ToTensorOp>(op);
}

static Operation *globalOf(Operation *load) {
  SymbolRefAttr name =
      isa<memref::GetGlobalOp>(load)
          ? SymbolRefAttr(cast<memref::GetGlobalOp>(load).getNameAttr())
          : load->getAttrOfType<SymbolRefAttr>("global");
  return SymbolTable::lookupNearestSymbolFrom(load, name);
}

/// Whether code outside the module may write the global.
static bool isWrittenOutside(Operation *global) {
  if (SymbolTable::getSymbolVisibility(global) !=
      SymbolTable::Visibility::Public)
    return false;
  return isa<memref::GlobalOp>(global)
             ? !cast<memref::GlobalOp>(global).getConstant()
             : cast<ml_program::GlobalOp>(global).getIsMutable();
}

/// Null also for `uninitialized` and for values outside the module.
static Attribute contentsOf(Operation *global) {
  Attribute value = isa<memref::GlobalOp>(global)
                        ? cast<memref::GlobalOp>(global).getInitialValueAttr()
                        : cast<ml_program::GlobalOp>(global).getValueAttr();
  return isa_and_nonnull<ElementsAttr>(value) ? value : Attribute();
}

static std::string checkType(RankedTensorType type) {
  if (!type || type.getRank() != 2)
    return "the table must have two dimensions, rows and columns";
  if (!type.hasStaticShape())
    return "the numbers of rows and columns of the table must be known, got: " +
           textOf(type);
  Type element = type.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return "the element type of the table must be f32, f16 or bf16, got: " +
           textOf(element);
  if (type.getDimSize(0) < 1 || type.getDimSize(1) < 1)
    return "the table is empty: " + textOf(type);
  return "";
}

/// `table` before casts.
static Value originOf(Value table) {
  while (Operation *op = table.getDefiningOp()) {
    if (!isCast(op) && !isToTensor(op))
      break;
    table = op->getOperand(0);
  }
  return table;
}

/// Whether `value` is an argument of a function.
static bool isArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner()->isEntryBlock() &&
         isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

bool neuroshard::raising::isStored(Value tensor) {
  Value origin = originOf(tensor);
  Operation *op = origin.getDefiningOp();
  return op ? isConstant(op) || isGlobalLoad(op) : isArgument(origin);
}

std::optional<TableSource> neuroshard::raising::sourceOf(Value table,
                                                         std::string &reason) {
  TableSource source;
  table = originOf(table);
  Operation *op = table.getDefiningOp();
  if (!op) {
    if (!isArgument(table) || isa<MemRefType>(table.getType())) {
      reason = "the table must be a tensor that is an argument of a function, "
               "a constant or a global; this one changes in a loop, branch or "
               "buffer";
      return std::nullopt;
    }
    source.value = table;
    source.type = builtinTensor(table.getType());
  } else if (isConstant(op)) {
    source.value = table;
    source.contents = op->getAttr("value");
    if (!isa_and_nonnull<ElementsAttr>(source.contents)) {
      reason = "the table is a constant without a value";
      return std::nullopt;
    }
    source.type = builtinTensor(table.getType());
  } else if (isGlobalLoad(op)) {
    source.global = globalOf(op);
    if (!source.global) {
      reason = "the table's global does not exist";
      return std::nullopt;
    }
    if (isWrittenOutside(source.global)) {
      reason = "the table's global is public and no constant: code outside the "
               "module may write it";
      return std::nullopt;
    }
    source.contents = contentsOf(source.global);
    if (auto memref = dyn_cast<MemRefType>(table.getType()))
      source.type =
          RankedTensorType::get(memref.getShape(), memref.getElementType());
    else
      source.type = builtinTensor(table.getType());
  } else {
    reason = "the table must be an argument of a function, a constant or a "
             "global; this one is computed by '" +
             textOf(op->getName()) + "'";
    return std::nullopt;
  }
  reason = checkType(source.type);
  if (!reason.empty())
    return std::nullopt;
  return source;
}

/// `tensor.dim` of a dimension that is known.
static bool isKnownSize(Operation *op) {
  auto dim = dyn_cast<tensor::DimOp>(op);
  return dim && dim.getConstantIndex().value_or(2) < 2;
}

/// The first op that reads the rows of `value` and is no lookup, or null.
static Operation *otherReader(Value value,
                              const llvm::DenseSet<OpOperand *> &reads) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (reads.contains(&use) || isKnownSize(user))
      continue;
    if (!isCast(user) && !isToTensor(user))
      return user;
    if (Operation *other = otherReader(user->getResult(0), reads))
      return other;
  }
  return nullptr;
}

static std::string readAlsoBy(Operation *op) {
  return "the table is also used by '" + textOf(op->getName()) +
         "', which is no lookup that can be raised; its rows will be on other "
         "devices";
}

static std::string whyNotGlobal(Operation *global,
                                const llvm::DenseSet<OpOperand *> &reads) {
  auto uses = SymbolTable::getSymbolUses(
      global, SymbolTable::getNearestSymbolTable(global->getParentOp()));
  if (!uses)
    return "the uses of the table's global cannot be known: an op of another "
           "dialect may have some";
  for (const SymbolTable::SymbolUse &use : *uses) {
    if (!isGlobalLoad(use.getUser()))
      return readAlsoBy(use.getUser());
    if (Operation *other = otherReader(use.getUser()->getResult(0), reads))
      return readAlsoBy(other);
  }
  return "";
}

static std::string whyNotArgument(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!namesSymbol(function->getParentOfType<ModuleOp>(),
                   function.getSymNameAttr()))
    return "";
  return "the table is an argument of '@" + printable(function.getSymName()) +
         "', whose calls cannot all be inlined: it calls itself, has several "
         "blocks or is named by another op";
}

std::string
neuroshard::raising::whyNotTable(const TableSource &source,
                                 const llvm::DenseSet<OpOperand *> &reads) {
  if (source.global)
    return whyNotGlobal(source.global, reads);
  if (auto argument = dyn_cast<BlockArgument>(source.value))
    if (std::string reason = whyNotArgument(argument); !reason.empty())
      return reason;
  Operation *other = otherReader(source.value, reads);
  return other ? readAlsoBy(other) : "";
}

/// Erases the casts of `value` that nobody uses; sizes of tables are constants.
static void eraseCasts(Value value, RankedTensorType type) {
  for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
    if (isKnownSize(user)) {
      OpBuilder builder(user);
      int64_t size =
          type.getDimSize(*cast<tensor::DimOp>(user).getConstantIndex());
      user->replaceAllUsesWith(
          arith::ConstantIndexOp::create(builder, user->getLoc(), size)
              .getOperation());
      user->erase();
      continue;
    }
    if (!isCast(user) && !isToTensor(user))
      continue;
    eraseCasts(user->getResult(0), type);
    if (user->use_empty())
      user->erase();
  }
}

void neuroshard::raising::eraseSource(const TableSource &source) {
  if (!source.global) {
    eraseCasts(source.value, source.type);
    Operation *op = source.value.getDefiningOp();
    if (op && op->use_empty())
      op->erase();
    return;
  }
  auto uses = SymbolTable::getSymbolUses(
      source.global,
      SymbolTable::getNearestSymbolTable(source.global->getParentOp()));
  for (const SymbolTable::SymbolUse &use : *uses) {
    eraseCasts(use.getUser()->getResult(0), source.type);
    use.getUser()->erase();
  }
  source.global->erase();
}
