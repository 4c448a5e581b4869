//===- JaggedArguments.cpp - Ids as jagged arguments ----------------------===//

#include "JaggedArguments.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::raising;

namespace {

/// An argument and the ops that bring it to a pack.
struct Brought {
  BlockArgument argument;
  SmallVector<Operation *> ops;
};

/// A pack whose operands are all arguments.
struct Packed {
  ir::PackOp pack;
  Brought ids;
  /// Null argument: offsets of bags of one size, made from that of the ids.
  Brought offsets;
  std::optional<Brought> weights;
  /// Whether their size is the number of ids, not of samples.
  bool hasIdEach = false;
};

} // namespace

static bool isBatchSize(Operation *op) {
  auto dim = dyn_cast<tensor::DimOp>(op);
  return dim && dim.getConstantIndex() == 0;
}

/// Whether all that reads `value` is `next`, or its size where `sizes`.
static bool isReadOnlyBy(Value value, Operation *next, bool sizes) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == next || (sizes && isBatchSize(user));
  });
}

static std::optional<Brought> bring(Value value, Operation *pack, bool sizes) {
  Brought brought;
  Operation *next = pack;
  while (isReadOnlyBy(value, next, sizes)) {
    next = value.getDefiningOp();
    if (!next) {
      brought.argument = cast<BlockArgument>(value);
      if (brought.argument.getOwner() != pack->getBlock())
        return std::nullopt;
      return brought;
    }
    if (!isa<tensor::CollapseShapeOp, tensor::CastOp>(next))
      return std::nullopt;
    brought.ops.push_back(next);
    value = next->getOperand(0);
  }
  return std::nullopt;
}

/// Why the ids cannot be a jagged argument, whose samples may have any number
/// of them; empty if they can.
static std::string whyNotJagged(MadePack made) {
  if (made.isEven && made.rank > 2)
    return "they have " + std::to_string(made.rank) +
           " dimensions; expected samples and the ids of each";
  for (Operation *user : made.op.getResult().getUsers()) {
    auto lookup = dyn_cast<ir::LookupOp>(user);
    if (!lookup || lookup.getPooling() != Pooling::None)
      continue;
    if (!lookup.getResult().getType().isDynamicDim(0))
      return "rows that are not pooled have a known number";
    if (made.isEven && made.rank == 2)
      return "rows that are not pooled need the number of ids that each sample "
             "has";
  }
  return "";
}

static std::optional<Packed> read(MadePack made) {
  ir::PackOp pack = made.op;
  Packed packed;
  packed.pack = pack;
  packed.hasIdEach = made.rank == 1;
  std::optional<Brought> ids = bring(pack.getIds()[0], pack, /*sizes=*/true);
  if (!ids)
    return std::nullopt;
  packed.ids = *ids;
  if (made.isEven) {
    Operation *offsets = pack.getOffsets()[0].getDefiningOp();
    if (!offsets->hasOneUse())
      return std::nullopt;
    packed.offsets.ops.push_back(offsets);
  } else {
    std::optional<Brought> given =
        bring(pack.getOffsets()[0], pack, /*sizes=*/false);
    if (!given)
      return std::nullopt;
    packed.offsets = *given;
  }
  if (!pack.getWeights().empty()) {
    packed.weights = bring(pack.getWeights()[0], pack, /*sizes=*/false);
    if (!packed.weights)
      return std::nullopt;
  }
  return packed;
}

/// Sizes of the ids are the number of samples, or of ids.
static void replaceSizes(Value ids, Value jagged, bool hasIdEach) {
  auto type = cast<ir::JaggedType>(jagged.getType());
  // Where ids of two dimensions are brought into one.
  bool flat = hasIdEach || cast<RankedTensorType>(ids.getType()).getRank() == 1;
  for (Operation *user : llvm::make_early_inc_range(ids.getUsers())) {
    if (!isBatchSize(user))
      continue;
    OpBuilder b(user);
    Value size =
        flat ? ir::NumIdsOp::create(b, user->getLoc(), jagged,
                                    type.getFeatures().front())
                   .getResult()
             : ir::BatchSizeOp::create(b, user->getLoc(), jagged).getResult();
    user->replaceAllUsesWith(ValueRange{size});
    user->erase();
  }
}

void neuroshard::raising::makeJaggedArguments(func::FuncOp function,
                                              ArrayRef<MadePack> packs) {
  SmallVector<Packed> all;
  for (MadePack made : packs) {
    std::optional<Packed> packed = read(made);
    std::string reason = whyNotJagged(made);
    if (!packed && reason.empty())
      reason = made.computed.empty()
                   ? "they, their offsets or weights are no arguments of the "
                     "function, or other ops read them, too"
                   : made.computed.str();
    if (!reason.empty())
      remark::missed(made.op.getLoc(),
                     remark::RemarkOpts::name("NotJagged")
                         .category("neuroshard-raise-lookups"))
          << "its ids stay a tensor: " + reason;
    else
      all.push_back(*packed);
  }
  llvm::SmallPtrSet<void *, 8> gone;
  for (Packed &packed : all) {
    BlockArgument ids = packed.ids.argument;
    unsigned number = ids.getArgNumber();
    (void)function.insertArgument(number, packed.pack.getResult().getType(), {},
                                  ids.getLoc());
    Value jagged = function.getArgument(number);
    packed.pack.getResult().replaceAllUsesWith(jagged);
    // Users before definitions; sizes of what is brought are those of the ids.
    packed.pack.erase();
    for (Operation *op : packed.offsets.ops)
      op->erase();
    for (Operation *op : packed.ids.ops) {
      replaceSizes(op->getResult(0), jagged, packed.hasIdEach);
      op->erase();
    }
    replaceSizes(ids, jagged, packed.hasIdEach);
    if (packed.weights)
      for (Operation *op : packed.weights->ops)
        op->erase();
    for (BlockArgument argument :
         {ids, packed.offsets.argument,
          packed.weights ? packed.weights->argument : BlockArgument()})
      if (argument)
        gone.insert(argument.getAsOpaquePointer());
  }
  BitVector erased(function.getNumArguments());
  for (BlockArgument argument : function.getArguments())
    if (gone.contains(argument.getAsOpaquePointer()))
      erased.set(argument.getArgNumber());
  (void)function.eraseArguments(erased);
}
