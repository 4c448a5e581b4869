//===- DistributeOverLanes.cpp - Functions on rows for lanes --------------===//
//
// neuroshard-distribute-over-lanes: rewrites a function on whole rows into the
// work of one lane of a group. The bodies have few kinds of ops; any other op
// is an error.
//
//===----------------------------------------------------------------------===//

#include "DistributeOverLanes.h"

#include "neuroshard/Conversion/GPU/LaneShape.h"
#include "neuroshard/Conversion/GPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_DISTRIBUTEOVERLANES
#include "neuroshard/Conversion/GPU/Passes.h.inc"

static constexpr llvm::StringLiteral kLanesAttr = "nsg.lanes";
static constexpr llvm::StringLiteral kColumnsAttr = "nsg.row_columns";
static constexpr llvm::StringLiteral kLaneAttr = "nsg.lane";
static constexpr llvm::StringLiteral kMaskAttr = "nsg.lane_mask";

/// Alignment of weights, states and other padded rows.
static constexpr int64_t kRowAlignment = 16;

namespace {
class Distributor {
public:
  Distributor(func::FuncOp from, const Lanes &lanes)
      : from(from), lanes(lanes), b(from.getLoc(), from.getContext()) {}

  LogicalResult run();

private:
  LogicalResult convertBlock(Block &block);
  LogicalResult convert(Operation &op);
  LogicalResult convertFor(scf::ForOp op);
  LogicalResult convertIf(scf::IfOp op);
  LogicalResult convertRead(vector::TransferReadOp op);
  LogicalResult convertWrite(vector::TransferWriteOp op);
  LogicalResult convertReduction(vector::ReductionOp op);
  LogicalResult convertElementwise(Operation &op);
  LogicalResult convertConstant(arith::ConstantOp op);
  LogicalResult convertMask(vector::ConstantMaskOp op);
  LogicalResult copyScalarOp(Operation &op);
  void writeScalar(vector::TransferWriteOp op);

  Value get(Value value) { return map.lookupOrDefault(value); }
  Type convertType(Type type) const;
  /// Whether a vector is cut into equal parts of neighbouring elements.
  bool isCut(VectorType type) const {
    return lanes.count == 1 || type.getNumElements() > 1;
  }
  LogicalResult checkTypes(Operation &op);
  LogicalResult checkTransfer(VectorTransferOpInterface transfer);
  /// `indices` of a row's vector, moved to the lane's part of it, or to the
  /// last one under the mask.
  SmallVector<Value> moveToLane(ValueRange indices, Value under,
                                int64_t perLane);
  llvm::Align getAlignment(Value memref, int64_t perLane) const;
  Value shuffle(Value value, int32_t offset);
  LogicalResult fail(Operation &op) {
    return op.emitOpError("cannot be distributed over the lanes of a warp");
  }

  func::FuncOp from;
  Lanes lanes;
  ImplicitLocOpBuilder b;
  IRMapping map;
  Value lane, mask;
  /// Arrays of which idle lanes read what another lane has.
  llvm::SmallPtrSet<Value, 4> readTwice;
};
} // namespace

/// Vectors of one element stay: they are scalars to be stored. Masks say
/// whether all elements of the lane are there.
Type Distributor::convertType(Type type) const {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getNumElements() == 1)
    return type;
  if (vector.getElementType().isInteger(1))
    return vector.getElementType();
  return VectorType::get({vector.getNumElements() / lanes.count},
                         vector.getElementType());
}

LogicalResult Distributor::run() {
  b.setInsertionPoint(from);
  auto to = func::FuncOp::create(b, from.getName(), from.getFunctionType());
  to.setVisibility(from.getVisibility());
  Block *entry = to.addEntryBlock();
  map.map(from.getArguments(), entry->getArguments());
  lane = entry->getArgument(lanes.laneArgument);
  mask = entry->getArgument(lanes.maskArgument);
  b.setInsertionPointToStart(entry);
  from.walk([&](vector::TransferReadOp read) {
    if (read.getMask())
      readTwice.insert(read.getBase());
  });
  if (failed(convertBlock(from.front()))) {
    to.erase();
    return failure();
  }
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b);
  from.erase();
  return success();
}

/// Converts all ops but the terminator.
LogicalResult Distributor::convertBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(convert(op)))
      return failure();
  return success();
}

/// Vectors have one dimension and, but for single elements, as many elements
/// for each lane.
LogicalResult Distributor::checkTypes(Operation &op) {
  auto check = [&](Type type) -> LogicalResult {
    auto vector = dyn_cast<VectorType>(type);
    if (!vector || (vector.getRank() == 1 && !vector.isScalable() &&
                    (vector.getNumElements() == 1 ||
                     vector.getNumElements() % lanes.count == 0)))
      return success();
    return op.emitOpError("has a vector that ")
           << lanes.count << " lanes cannot share equally: " << type;
  };
  for (Type type : llvm::concat<Type>(llvm::to_vector(op.getOperandTypes()),
                                      llvm::to_vector(op.getResultTypes())))
    if (failed(check(type)))
      return failure();
  return success();
}

LogicalResult Distributor::convert(Operation &op) {
  b.setLoc(op.getLoc());
  if (failed(checkTypes(op)))
    return failure();
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](scf::ForOp loop) { return convertFor(loop); })
      .Case([&](scf::IfOp branch) { return convertIf(branch); })
      .Case([&](vector::TransferReadOp read) { return convertRead(read); })
      .Case([&](vector::TransferWriteOp write) { return convertWrite(write); })
      .Case([&](vector::ReductionOp sum) { return convertReduction(sum); })
      .Case(
          [&](arith::ConstantOp constant) { return convertConstant(constant); })
      .Case([&](vector::ConstantMaskOp whole) { return convertMask(whole); })
      // A scalar, read by every lane; an array.
      .Case<memref::LoadOp, UnrealizedConversionCastOp>([&](Operation *whole) {
        b.clone(*whole, map);
        return success();
      })
      .Default([&](Operation *other) {
        if (other->hasTrait<OpTrait::Elementwise>() ||
            isa<vector::BroadcastOp>(other))
          return convertElementwise(*other);
        return copyScalarOp(*other);
      });
}

LogicalResult Distributor::copyScalarOp(Operation &op) {
  auto isRowType = [](Type type) { return isa<VectorType, MemRefType>(type); };
  if (op.getNumRegions() != 0 ||
      llvm::any_of(op.getOperandTypes(), isRowType) ||
      llvm::any_of(op.getResultTypes(), isRowType))
    return fail(op);
  b.clone(op, map);
  return success();
}

LogicalResult Distributor::convertFor(scf::ForOp op) {
  SmallVector<Value> inits;
  for (Value init : op.getInitArgs())
    inits.push_back(get(init));
  auto loop =
      scf::ForOp::create(b, get(op.getLowerBound()), get(op.getUpperBound()),
                         get(op.getStep()), inits);
  map.map(op.getInductionVar(), loop.getInductionVar());
  map.map(op.getRegionIterArgs(), loop.getRegionIterArgs());
  map.map(op.getResults(), loop.getResults());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  if (failed(convertBlock(*op.getBody())))
    return failure();
  if (inits.empty())
    return success(); // The builder has made the terminator.
  SmallVector<Value> next;
  for (Value value : op.getBody()->getTerminator()->getOperands())
    next.push_back(get(value));
  b.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(b, next);
  return success();
}

LogicalResult Distributor::convertIf(scf::IfOp op) {
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(convertType(type));
  auto branch = scf::IfOp::create(b, TypeRange(types), get(op.getCondition()),
                                  /*withElseRegion=*/op.elseBlock() != nullptr);
  map.map(op.getResults(), branch.getResults());
  auto convertSide = [&](Block *from, Block *to) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(to);
    if (failed(convertBlock(*from)))
      return failure();
    SmallVector<Value> results;
    for (Value value : from->getTerminator()->getOperands())
      results.push_back(get(value));
    // Without results the builder has already made the terminator.
    if (!results.empty())
      scf::YieldOp::create(b, results);
    return success();
  };
  if (failed(convertSide(op.thenBlock(), branch.thenBlock())))
    return failure();
  if (!op.elseBlock())
    return success();
  return convertSide(op.elseBlock(), branch.elseBlock());
}

LogicalResult Distributor::checkTransfer(VectorTransferOpInterface transfer) {
  auto memref = dyn_cast<MemRefType>(transfer.getShapedType());
  Value whole = transfer.getMask();
  bool isKnownMask = !whole || whole.getDefiningOp<vector::ConstantMaskOp>();
  if (memref && memref.getRank() <= 2 && memref.getRank() > 0 && isKnownMask &&
      !transfer.hasOutOfBoundsDim() &&
      transfer.getPermutationMap().isMinorIdentity())
    return success();
  return transfer->emitOpError(
      "must take neighbouring elements, all in bounds, of a "
      "memref of one or two dimensions");
}

SmallVector<Value> Distributor::moveToLane(ValueRange indices, Value under,
                                           int64_t perLane) {
  SmallVector<Value> moved;
  for (Value index : indices)
    moved.push_back(get(index));
  if (lanes.count == 1)
    return moved;
  Value number = lane;
  if (under) {
    auto mask = under.getDefiningOp<vector::ConstantMaskOp>();
    int64_t there = mask.getMaskDimSizes().front();
    number = arith::MinUIOp::create(
        b, lane, arith::ConstantIndexOp::create(b, there / perLane - 1));
  }
  Value before = arith::MulIOp::create(
      b, number, arith::ConstantIndexOp::create(b, perLane));
  moved.back() = arith::AddIOp::create(b, moved.back(), before);
  return moved;
}

/// Padded rows, in memrefs of rank 2, are aligned to 16 bytes. Rows of the
/// caller are too if their size is a multiple of 16 bytes; otherwise they are
/// aligned to an element (GpuKernelABI.h).
llvm::Align Distributor::getAlignment(Value memref, int64_t perLane) const {
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t row = lanes.columns * bytes;
  bool isAligned = type.getRank() == 2 || row % kRowAlignment == 0;
  int64_t ofRow = isAligned ? kRowAlignment : bytes;
  int64_t part = perLane * bytes;
  return llvm::Align(std::min({ofRow, part & -part, kRowAlignment}));
}

/// Lanes behind the mask read what the last one before them reads: elements
/// without a value may have any.
LogicalResult Distributor::convertRead(vector::TransferReadOp op) {
  if (failed(checkTransfer(op)))
    return failure();
  bool hasPadding =
      op.getMask() && !op.getPadding().getDefiningOp<ub::PoisonOp>();
  if (!isCut(op.getVectorType()) || hasPadding)
    return fail(*op);
  auto type = cast<VectorType>(convertType(op.getVectorType()));
  int64_t perLane = type.getNumElements();
  auto load = vector::LoadOp::create(
      b, type, get(op.getBase()),
      moveToLane(op.getIndices(), op.getMask(), perLane),
      /*nontemporal=*/false, getAlignment(op.getBase(), perLane));
  map.map(op.getResult(), load.getResult());
  return success();
}

LogicalResult Distributor::convertWrite(vector::TransferWriteOp op) {
  if (failed(checkTransfer(op)))
    return failure();
  if (!isCut(op.getVectorType())) {
    writeScalar(op);
    return success();
  }
  OpBuilder::InsertionGuard guard(b);
  if (op.getMask()) {
    if (readTwice.contains(op.getBase()))
      NVVM::SyncWarpOp::create(b, mask);
    auto branch =
        scf::IfOp::create(b, get(op.getMask()), /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value value = get(op.getValueToStore());
  int64_t perLane = cast<VectorType>(value.getType()).getNumElements();
  vector::StoreOp::create(b, value, get(op.getBase()),
                          moveToLane(op.getIndices(), op.getMask(), perLane),
                          /*nontemporal=*/false,
                          getAlignment(op.getBase(), perLane));
  return success();
}

/// Waits for the other lanes, which may still read the old value.
void Distributor::writeScalar(vector::TransferWriteOp op) {
  NVVM::SyncWarpOp::create(b, mask);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, zero);
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(get(index));
  vector::StoreOp::create(b, get(op.getValueToStore()), get(op.getBase()),
                          indices, /*nontemporal=*/false,
                          getAlignment(op.getBase(), 1));
}

/// The value of the lane whose number differs by the bits of `offset`.
/// gpu.shuffle is for all lanes of a warp at once; smaller groups of one warp
/// may be in different places, and each shuffles under its own mask.
Value Distributor::shuffle(Value value, int32_t offset) {
  if (lanes.count == kWarp)
    return gpu::ShuffleOp::create(b, value, offset, static_cast<int32_t>(kWarp),
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  auto constant = [&](int32_t number) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(number));
  };
  return NVVM::ShflOp::create(b, value.getType(), mask, value, constant(offset),
                              constant(kWarp - 1), NVVM::ShflKind::bfly,
                              UnitAttr());
}

/// The lane's elements first, then the lanes: each sum is of two equal halves
/// in every lane, so all lanes get the same bits.
LogicalResult Distributor::convertReduction(vector::ReductionOp op) {
  if (op.getKind() != vector::CombiningKind::ADD || op.getAcc() ||
      !isCut(op.getSourceVectorType()))
    return fail(*op);
  Value own = get(op.getVector());
  Value sum = vector::ExtractOp::create(b, own, int64_t{0});
  for (int64_t i = 1, n = cast<VectorType>(own.getType()).getNumElements();
       i < n; ++i)
    sum = arith::AddFOp::create(b, sum, vector::ExtractOp::create(b, own, i));
  for (int64_t offset = 1; offset < lanes.count; offset *= 2)
    sum = arith::AddFOp::create(b, sum,
                                shuffle(sum, static_cast<int32_t>(offset)));
  map.map(op.getResult(), sum);
  return success();
}

LogicalResult Distributor::convertElementwise(Operation &op) {
  OperationState state(op.getLoc(), op.getName());
  for (Value operand : op.getOperands())
    state.addOperands(get(operand));
  for (Type type : op.getResultTypes())
    state.addTypes(convertType(type));
  state.addAttributes(op.getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op.getPropertiesAsAttribute();
  map.map(op.getResults(), b.create(state)->getResults());
  return success();
}

LogicalResult Distributor::convertConstant(arith::ConstantOp op) {
  auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
  if (!splat) {
    b.clone(*op, map);
    return success();
  }
  auto type = cast<ShapedType>(convertType(op.getType()));
  map.map(op.getResult(),
          arith::ConstantOp::create(
              b, SplatElementsAttr::get(type, splat.getSplatValue<Attribute>()))
              .getResult());
  return success();
}

/// Each lane's elements must be all there or all behind the mask.
LogicalResult Distributor::convertMask(vector::ConstantMaskOp op) {
  int64_t perLane = op.getType().getNumElements() / lanes.count;
  int64_t there = op.getMaskDimSizes().front();
  if (!isCut(op.getType()) || there == 0 || there % perLane != 0)
    return op.emitOpError("masks a part of a lane's ")
           << perLane << " elements: " << there << " are there";
  map.map(
      op.getResult(),
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane,
                            arith::ConstantIndexOp::create(b, there / perLane))
          .getResult());
  return success();
}

void markForLanes(func::FuncOp func, const Lanes &lanes) {
  Builder b(func.getContext());
  func->setAttr(kLanesAttr, b.getI64IntegerAttr(lanes.count));
  func->setAttr(kColumnsAttr, b.getI64IntegerAttr(lanes.columns));
  func.setArgAttr(lanes.laneArgument, kLaneAttr, b.getUnitAttr());
  func.setArgAttr(lanes.maskArgument, kMaskAttr, b.getUnitAttr());
}

static FailureOr<unsigned> findArgument(func::FuncOp func, StringRef name,
                                        Type type) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (func.getArgAttr(i, name) && func.getArgumentTypes()[i] == type)
      return i;
  return func.emitOpError("must have an argument of type ")
         << type << " with the attribute '" << name << "'";
}

/// The lanes that markForLanes has written.
static FailureOr<Lanes> readLanes(func::FuncOp func) {
  auto count = func->getAttrOfType<IntegerAttr>(kLanesAttr);
  auto columns = func->getAttrOfType<IntegerAttr>(kColumnsAttr);
  if (!count || !llvm::has_single_bit(count.getValue().getZExtValue()) ||
      count.getInt() > kWarp)
    return func.emitOpError("must have a power of two up to 32 as '")
           << kLanesAttr << "', got: " << func->getAttr(kLanesAttr);
  if (!columns || columns.getInt() < 1)
    return func.emitOpError("must have the columns of a row, at least 1, as '")
           << kColumnsAttr << "'";
  if (func.isDeclaration() || !func.getBody().hasOneBlock() ||
      func.getNumResults() != 0)
    return func.emitOpError("must have a body of one block and no results to "
                            "be distributed over lanes");
  Builder b(func.getContext());
  auto lane = findArgument(func, kLaneAttr, b.getIndexType());
  auto mask = findArgument(func, kMaskAttr, b.getI32Type());
  if (failed(lane) || failed(mask))
    return failure();
  return Lanes{count.getInt(), columns.getInt(), *lane, *mask};
}

namespace {
struct DistributeOverLanes
    : impl::DistributeOverLanesBase<DistributeOverLanes> {
  void runOnOperation() override {
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!func->hasAttr(kLanesAttr))
        continue;
      FailureOr<Lanes> lanes = readLanes(func);
      if (failed(lanes) || failed(Distributor(func, *lanes).run()))
        return signalPassFailure();
    }
  }
};
} // namespace

} // namespace neuroshard
