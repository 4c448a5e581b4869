//===- TileContractions.cpp - Matrix products by tiles of registers -------===//
//
// The loops, outermost first: blocks of rows of C, blocks of k, blocks of
// columns, for which B is packed, then tiles of rows whose sums stay in
// registers while k runs. Every sum adds its products in the order of k, so
// sizes of blocks and tiles leave no trace in the bits.
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "RemarkLock.h"

#include "neuroshard/Conversion/Native/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace neuroshard {

#define GEN_PASS_DEF_TILECONTRACTIONS
#include "neuroshard/Conversion/Native/Passes.h.inc"

namespace {

/// A packed block of B, 256 rows of 32 f32, fills a level-1 cache of 32 KiB; a
/// block of A, 480 rows of 256, half of a level-2 cache of 1 MiB.
constexpr int64_t kBlockOfSums = 256, kBlockOfRows = 480;

/// Rows and columns of what MLIR turns by shuffles.
constexpr int64_t kSquare = 16;

/// Bytes of a cache line.
constexpr int64_t kAlignment = 64;

struct Tile {
  int64_t rows, columns;
  bool fused;
};

/// Writes the loops of one contraction.
class Writer {
public:
  Writer(IRRewriter &rewriter, Location loc, const Contraction &contraction,
         Tile tile, Value packed)
      : rewriter(rewriter), loc(loc), contraction(contraction), tile(tile),
        packed(packed), zero(index(0)), one(index(1)) {}

  void write() {
    at.resize(contraction.outer.size() + 3);
    writeOuter(contraction.outer);
  }

private:
  using Body = llvm::function_ref<void(Value)>;

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  Value add(Value a, Value b) {
    return arith::AddIOp::create(rewriter, loc, a, b);
  }
  Value subtract(Value a, Value b) {
    return arith::SubIOp::create(rewriter, loc, a, b);
  }
  /// A value, or a vector, in f32.
  Value extended(Value value) {
    Type type = value.getType();
    if (getElementTypeOrSelf(type).isF32())
      return value;
    Type wide = rewriter.getF32Type();
    if (auto vector = dyn_cast<VectorType>(type))
      wide = vector.cloneWith(std::nullopt, wide);
    return arith::ExtFOp::create(rewriter, loc, wide, value);
  }
  Value smaller(Value a, Value b) {
    return arith::MinSIOp::create(rewriter, loc, a, b);
  }
  /// Whether neighbours in a row of B are of one column of the product.
  bool readsColumns() const {
    return contraction.b.loops.back() == contraction.k;
  }
  VectorType vectorType() {
    return VectorType::get({tile.columns}, rewriter.getF32Type());
  }

  void loop(Value begin, Value end, int64_t step, Body body) {
    auto forOp = scf::ForOp::create(rewriter, loc, begin, end, index(step));
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(forOp.getBody());
    body(forOp.getInductionVar());
  }

  /// Blocks of [0, end): gives the first number and the end of each.
  void blocks(Value end, int64_t size,
              llvm::function_ref<void(Value, Value)> body) {
    loop(zero, end, size, [&](Value begin) {
      body(begin, smaller(add(begin, index(size)), end));
    });
  }

  Value extentOf(unsigned wanted) {
    for (const ContractionOperand *operand :
         {&contraction.a, &contraction.b, &contraction.c})
      for (auto [dim, number] : llvm::enumerate(operand->loops))
        if (number == wanted)
          return memref::DimOp::create(rewriter, loc, operand->buffer,
                                       index(dim));
    llvm_unreachable("a loop of no operand");
  }

  /// The indices of an operand with the loops where `at` has them.
  SmallVector<Value> indicesOf(const ContractionOperand &operand) {
    return llvm::map_to_vector(operand.loops,
                               [&](unsigned number) { return at[number]; });
  }

  void writeOuter(ArrayRef<unsigned> loops);
  void pack(Value firstSum, Value numSums, Value firstColumn, Value numColumns);
  void packSquares(Value firstSum, Value sums, Value firstColumn,
                   Value columns);
  void packElements(Value firstSum, Value beginSum, Value endSum,
                    Value firstColumn, Value beginColumn, Value endColumn);
  void writeRows(int64_t count, Value firstRow, Value firstSum, Value numSums,
                 Value firstColumn, Value mask);
  SmallVector<Value> accumulate(ArrayRef<Value> sums, Value firstRow,
                                Value firstSum, Value numSums);
  Value multiplyAdd(Value left, Value right, Value sum);

  IRRewriter &rewriter;
  Location loc;
  const Contraction &contraction;
  Tile tile;
  Value packed;
  Value zero, one;
  /// Where each loop stands.
  SmallVector<Value> at;
};

void Writer::writeOuter(ArrayRef<unsigned> loops) {
  if (!loops.empty()) {
    loop(zero, extentOf(loops.front()), 1, [&](Value number) {
      at[loops.front()] = number;
      writeOuter(loops.drop_front());
    });
    return;
  }
  Value rows = extentOf(contraction.i), columns = extentOf(contraction.j);
  Value sums = extentOf(contraction.k);
  blocks(rows, kBlockOfRows, [&](Value firstRow, Value lastRow) {
    blocks(sums, kBlockOfSums, [&](Value firstSum, Value lastSum) {
      Value numSums = subtract(lastSum, firstSum);
      blocks(columns, tile.columns, [&](Value firstColumn, Value lastColumn) {
        Value numColumns = subtract(lastColumn, firstColumn);
        pack(firstSum, numSums, firstColumn, numColumns);
        Value mask = vector::CreateMaskOp::create(
            rewriter, loc,
            VectorType::get({tile.columns}, rewriter.getI1Type()), numColumns);
        Value tiledRows = subtract(
            lastRow,
            arith::RemUIOp::create(rewriter, loc, subtract(lastRow, firstRow),
                                   index(tile.rows)));
        loop(firstRow, tiledRows, tile.rows, [&](Value row) {
          writeRows(tile.rows, row, firstSum, numSums, firstColumn, mask);
        });
        loop(tiledRows, lastRow, 1, [&](Value row) {
          writeRows(1, row, firstSum, numSums, firstColumn, mask);
        });
      });
    });
  });
}

/// Copies a block of B so that its rows lie one after the other.
void Writer::pack(Value firstSum, Value numSums, Value firstColumn,
                  Value numColumns) {
  auto inSquares = [&](Value number) {
    Value rest = arith::RemUIOp::create(rewriter, loc, number, index(kSquare));
    return subtract(number, rest);
  };
  if (!readsColumns() || !hasContiguousRows(contraction.b.buffer))
    return packElements(firstSum, zero, numSums, firstColumn, zero, numColumns);
  Value sums = inSquares(numSums), columns = inSquares(numColumns);
  packSquares(firstSum, sums, firstColumn, columns);
  packElements(firstSum, sums, numSums, firstColumn, zero, columns);
  packElements(firstSum, zero, numSums, firstColumn, columns, numColumns);
}

/// Reads squares of B whose rows are columns of the product, and turns them in
/// registers.
void Writer::packSquares(Value firstSum, Value sums, Value firstColumn,
                         Value columns) {
  auto row = VectorType::get(
      {kSquare},
      cast<MemRefType>(contraction.b.buffer.getType()).getElementType());
  auto square = VectorType::get({kSquare, kSquare}, rewriter.getF32Type());
  loop(zero, columns, kSquare, [&](Value column) {
    loop(zero, sums, kSquare, [&](Value sum) {
      at[contraction.k] = add(firstSum, sum);
      Value block = arith::ConstantOp::create(rewriter, loc,
                                              rewriter.getZeroAttr(square));
      for (int64_t i = 0; i < kSquare; ++i) {
        at[contraction.j] = add(firstColumn, add(column, index(i)));
        Value line = vector::LoadOp::create(
            rewriter, loc, row, contraction.b.buffer, indicesOf(contraction.b));
        block =
            vector::InsertOp::create(rewriter, loc, extended(line), block, i);
      }
      Value turned = vector::TransposeOp::create(rewriter, loc, block,
                                                 ArrayRef<int64_t>{1, 0});
      for (int64_t i = 0; i < kSquare; ++i)
        vector::StoreOp::create(
            rewriter, loc, vector::ExtractOp::create(rewriter, loc, turned, i),
            packed, ValueRange{add(sum, index(i)), column});
    });
  });
}

void Writer::packElements(Value firstSum, Value beginSum, Value endSum,
                          Value firstColumn, Value beginColumn,
                          Value endColumn) {
  // Rows of B are read in the order of its memory.
  bool byColumns = readsColumns();
  loop(byColumns ? beginColumn : beginSum, byColumns ? endColumn : endSum, 1,
       [&](Value outer) {
         loop(byColumns ? beginSum : beginColumn,
              byColumns ? endSum : endColumn, 1, [&](Value inner) {
                Value sum = byColumns ? inner : outer;
                Value column = byColumns ? outer : inner;
                at[contraction.k] = add(firstSum, sum);
                at[contraction.j] = add(firstColumn, column);
                Value element =
                    memref::LoadOp::create(rewriter, loc, contraction.b.buffer,
                                           indicesOf(contraction.b));
                memref::StoreOp::create(rewriter, loc, extended(element),
                                        packed, ValueRange{sum, column});
              });
       });
}

Value Writer::multiplyAdd(Value left, Value right, Value sum) {
  if (tile.fused)
    return math::FmaOp::create(rewriter, loc, left, right, sum);
  Value product = arith::MulFOp::create(rewriter, loc, left, right);
  return arith::AddFOp::create(rewriter, loc, sum, product);
}

/// The sums with the products of a block added, in the order of k.
SmallVector<Value> Writer::accumulate(ArrayRef<Value> sums, Value firstRow,
                                      Value firstSum, Value numSums) {
  auto forOp = scf::ForOp::create(rewriter, loc, zero, numSums, one, sums);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(forOp.getBody());
  Value sum = forOp.getInductionVar();
  Value right = vector::LoadOp::create(rewriter, loc, vectorType(), packed,
                                       ValueRange{sum, zero});
  at[contraction.k] = add(firstSum, sum);
  SmallVector<Value> next;
  for (auto [row, previous] : llvm::enumerate(forOp.getRegionIterArgs())) {
    at[contraction.i] = add(firstRow, index(row));
    Value left = memref::LoadOp::create(rewriter, loc, contraction.a.buffer,
                                        indicesOf(contraction.a));
    Value spread = vector::BroadcastOp::create(rewriter, loc, vectorType(),
                                               extended(left));
    next.push_back(multiplyAdd(spread, right, previous));
  }
  scf::YieldOp::create(rewriter, loc, next);
  return SmallVector<Value>(forOp.getResults());
}

/// `count` rows of one block of columns.
void Writer::writeRows(int64_t count, Value firstRow, Value firstSum,
                       Value numSums, Value firstColumn, Value mask) {
  at[contraction.j] = firstColumn;
  Value nothing = arith::ConstantOp::create(rewriter, loc,
                                            rewriter.getZeroAttr(vectorType()));
  SmallVector<Value> sums;
  SmallVector<SmallVector<Value>> places;
  for (int64_t row = 0; row < count; ++row) {
    at[contraction.i] = add(firstRow, index(row));
    places.push_back(indicesOf(contraction.c));
    sums.push_back(vector::MaskedLoadOp::create(rewriter, loc, vectorType(),
                                                contraction.c.buffer,
                                                places.back(), mask, nothing));
  }
  sums = accumulate(sums, firstRow, firstSum, numSums);
  for (auto [sum, place] : llvm::zip_equal(sums, places))
    vector::MaskedStoreOp::create(rewriter, loc, contraction.c.buffer, place,
                                  mask, sum);
}

remark::RemarkOpts remarkNamed(StringRef name) {
  return remark::RemarkOpts::name(name).category(
      "neuroshard-tile-contractions");
}

void remarkOnTiled(linalg::GenericOp op, Tile tile) {
  auto lock = remarkLock();
  remark::passed(op.getLoc(), remarkNamed("Tiled")) << remark::add(
      "matrix product by tiles of {0} x {1} sums, {2}", tile.rows, tile.columns,
      tile.fused ? "products and sums rounded once"
                 : "products and sums each rounded");
}

void remarkOnMissed(linalg::GenericOp op) {
  auto lock = remarkLock();
  remark::missed(op.getLoc(), remarkNamed("NotTiled"))
      << "a product stays loops over elements: expected sums in f32 over one "
         "loop, rows and columns, and contiguous rows of the result";
}

struct TileContractions : impl::TileContractionsBase<TileContractions> {
  using TileContractionsBase::TileContractionsBase;

  void runOnOperation() override {
    Tile tile{rows, columns, fused};
    if (tile.rows < 1 || tile.columns < 1) {
      emitError(getOperation().getLoc(), "a tile needs at least 1 row and 1 "
                                         "column, got: ")
          << tile.rows << " x " << tile.columns;
      return signalPassFailure();
    }
    SmallVector<std::pair<linalg::GenericOp, Contraction>, 0> found;
    getOperation().walk([&](linalg::GenericOp op) {
      if (std::optional<Contraction> one = Contraction::match(op))
        found.emplace_back(op, *one);
      else if (linalg::isaContractionOpInterface(op))
        remarkOnMissed(op);
    });
    if (found.empty())
      return;
    IRRewriter rewriter(&getContext());
    rewriter.setInsertionPointToStart(&getOperation().getBody().front());
    // Columns beyond the last of B are added to sums that are not stored.
    Value packed = memref::AllocaOp::create(
        rewriter, getOperation().getLoc(),
        MemRefType::get({kBlockOfSums, tile.columns}, rewriter.getF32Type()),
        rewriter.getI64IntegerAttr(kAlignment));
    for (auto &[op, contraction] : found) {
      remarkOnTiled(op, tile);
      rewriter.setInsertionPoint(op);
      Writer(rewriter, op.getLoc(), contraction, tile, packed).write();
      rewriter.eraseOp(op);
      ++numTiled;
    }
    RewritePatternSet patterns(&getContext());
    vector::populateVectorTransposeLoweringPatterns(
        patterns, vector::VectorTransposeLowering::Shuffle16x16);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

} // namespace neuroshard
