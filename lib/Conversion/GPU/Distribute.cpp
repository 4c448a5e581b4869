//===- Distribute.cpp - Rows over the lanes of a warp ---------------------===//
//
// Rewrites a function on whole rows into what one lane of a group does: a
// vector of N becomes the lane's N / lanes neighbouring elements, a reduction
// ends in shuffles, scalars are computed by every lane. A scalar is stored by
// the first lane, once all lanes have read what they need.
//
// MLIR's warp distribution is not used here: it sinks ops out of a region one
// by one and leaves what it does not know to a lane 0 that talks to the others
// through shared memory. The bodies have few kinds of ops; this rewriting knows
// each, and an op that it does not know is an error.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"

#include "DeviceStruct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace neuroshard {

/// Alignment of weights, states and other padded rows.
static constexpr int64_t kRowAlignment = 16;
/// Lane and bits of nvvm.shfl.sync for segments of a whole warp.
static constexpr int32_t kWholeWarp = 31;

namespace {
class Distributor {
public:
  Distributor(func::FuncOp from, const Lanes &lanes)
      : from(from), lanes(lanes), b(from.getLoc(), from.getContext()) {}

  FailureOr<func::FuncOp> run();

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
  LogicalResult convertLoad(memref::LoadOp op);
  void writeScalar(vector::TransferWriteOp op);

  Value get(Value value) { return map.lookupOrDefault(value); }
  Type convertType(Type type) const;
  /// Address of the element at `indices`, and how it is aligned.
  Value getAddress(Value memref, ValueRange indices, Value lane,
                   int64_t perLane);
  unsigned getAlignment(Value memref, int64_t perLane) const;
  static bool isInvariant(Value memref) {
    return memref.getDefiningOp()->hasAttr(kInvariantAttr);
  }
  LogicalResult fail(Operation &op) {
    return op.emitOpError("cannot be distributed over the lanes of a warp");
  }

  func::FuncOp from;
  Lanes lanes;
  ImplicitLocOpBuilder b;
  IRMapping map;
  Value lane, mask;
};
} // namespace

/// One element stays one: it is a scalar on its way to be stored.
Type Distributor::convertType(Type type) const {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getNumElements() == 1)
    return type;
  return VectorType::get({vector.getNumElements() / lanes.count},
                         vector.getElementType());
}

FailureOr<func::FuncOp> Distributor::run() {
  b.setInsertionPoint(from);
  auto to = func::FuncOp::create(b, from.getName(), from.getFunctionType());
  to.setVisibility(from.getVisibility());
  Block *entry = to.addEntryBlock();
  map.map(from.getArguments(), entry->getArguments());
  lane = entry->getArgument(lanes.laneArgument);
  mask = entry->getArgument(lanes.maskArgument);
  b.setInsertionPointToStart(entry);
  if (failed(convertBlock(from.front())))
    return failure();
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b);
  from.erase();
  return to;
}

/// Converts all ops but the terminator.
LogicalResult Distributor::convertBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(convert(op)))
      return failure();
  return success();
}

LogicalResult Distributor::convert(Operation &op) {
  b.setLoc(op.getLoc());
  auto isRowType = [](Type type) { return isa<VectorType, MemRefType>(type); };
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](scf::ForOp loop) { return convertFor(loop); })
      .Case([&](scf::IfOp branch) { return convertIf(branch); })
      .Case([&](vector::TransferReadOp read) { return convertRead(read); })
      .Case([&](vector::TransferWriteOp write) { return convertWrite(write); })
      .Case([&](vector::ReductionOp sum) { return convertReduction(sum); })
      .Case(
          [&](arith::ConstantOp constant) { return convertConstant(constant); })
      .Case([&](memref::LoadOp load) { return convertLoad(load); })
      // The memref's uses look at the cast that made it.
      .Case([&](UnrealizedConversionCastOp) { return success(); })
      .Default([&](Operation *other) -> LogicalResult {
        if (other->hasTrait<OpTrait::Elementwise>() ||
            isa<vector::BroadcastOp>(other))
          return convertElementwise(*other);
        if (other->getNumRegions() != 0 ||
            llvm::any_of(other->getOperandTypes(), isRowType) ||
            llvm::any_of(other->getResultTypes(), isRowType))
          return fail(*other);
        b.clone(*other, map);
        return success();
      });
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

Value Distributor::getAddress(Value memref, ValueRange indices, Value at,
                              int64_t perLane) {
  auto type = cast<MemRefType>(memref.getType());
  Value element = get(indices.front());
  auto add = [&](Value value) {
    element = arith::AddIOp::create(b, element, value);
  };
  if (type.getRank() == 2) {
    element = arith::MulIOp::create(
        b, element, arith::ConstantIndexOp::create(b, type.getDimSize(1)));
    add(get(indices.back()));
  }
  if (at && lanes.count > 1)
    add(arith::MulIOp::create(b, at,
                              arith::ConstantIndexOp::create(b, perLane)));
  Value number = arith::IndexCastOp::create(b, b.getI64Type(), element);
  Value pointer = get(memref.getDefiningOp()->getOperand(0));
  return LLVM::GEPOp::create(b, pointer.getType(), type.getElementType(),
                             pointer, ArrayRef<LLVM::GEPArg>{number});
}

/// Padded rows are aligned as a whole. Others, the caller's, are where they are
/// whole pieces of 16 bytes, else to an element (GpuKernelABI.h).
unsigned Distributor::getAlignment(Value memref, int64_t perLane) const {
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t row = lanes.dim * bytes;
  bool isAligned = type.getRank() == 2 || row % kRowAlignment == 0;
  int64_t ofRow = isAligned ? kRowAlignment : bytes;
  int64_t piece = perLane * bytes;
  return std::min({ofRow, piece & -piece, kRowAlignment});
}

LogicalResult Distributor::convertRead(vector::TransferReadOp op) {
  auto type = cast<VectorType>(convertType(op.getVectorType()));
  int64_t perLane = type.getNumElements();
  Value address = getAddress(op.getBase(), op.getIndices(), lane, perLane);
  map.map(op.getResult(),
          LLVM::LoadOp::create(b, type, address,
                               getAlignment(op.getBase(), perLane),
                               /*isVolatile=*/false, /*isNonTemporal=*/false,
                               isInvariant(op.getBase()))
              .getResult());
  return success();
}

LogicalResult Distributor::convertWrite(vector::TransferWriteOp op) {
  Value value = get(op.getValueToStore());
  int64_t perLane = cast<VectorType>(value.getType()).getNumElements();
  if (op.getVectorType().getNumElements() == 1 && lanes.count > 1) {
    writeScalar(op);
    return success();
  }
  Value address = getAddress(op.getBase(), op.getIndices(), lane, perLane);
  LLVM::StoreOp::create(b, value, address, getAlignment(op.getBase(), perLane));
  return success();
}

/// Other lanes may still have to read what is overwritten.
void Distributor::writeScalar(vector::TransferWriteOp op) {
  NVVM::SyncWarpOp::create(b, mask);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, zero);
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value address = getAddress(op.getBase(), op.getIndices(), {}, 1);
  LLVM::StoreOp::create(b, get(op.getValueToStore()), address,
                        getAlignment(op.getBase(), 1));
}

/// The lane's elements first, then the lanes: each sum is of two equal halves
/// in every lane, so all lanes get the same bits.
LogicalResult Distributor::convertReduction(vector::ReductionOp op) {
  if (op.getKind() != vector::CombiningKind::ADD || op.getAcc())
    return fail(*op);
  Value own = get(op.getVector());
  Value sum = vector::ExtractOp::create(b, own, int64_t(0));
  for (int64_t i = 1, n = cast<VectorType>(own.getType()).getNumElements();
       i < n; ++i)
    sum = arith::AddFOp::create(b, sum, vector::ExtractOp::create(b, own, i));
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  for (int64_t offset = 1; offset < lanes.count; offset *= 2) {
    Value other = NVVM::ShflOp::create(
        b, sum.getType(), mask, sum, constant(int32_t(offset)),
        constant(kWholeWarp), NVVM::ShflKind::bfly, UnitAttr());
    sum = arith::AddFOp::create(b, sum, other);
  }
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

/// A scalar, read by every lane.
LogicalResult Distributor::convertLoad(memref::LoadOp op) {
  Value address = getAddress(op.getMemRef(), op.getIndices(), {}, 1);
  Type type = op.getType();
  map.map(op.getResult(),
          LLVM::LoadOp::create(b, type, address,
                               type.getIntOrFloatBitWidth() / 8,
                               /*isVolatile=*/false, /*isNonTemporal=*/false,
                               isInvariant(op.getMemRef()))
              .getResult());
  return success();
}

FailureOr<func::FuncOp> distribute(func::FuncOp func, const Lanes &lanes) {
  return Distributor(func, lanes).run();
}

} // namespace neuroshard
