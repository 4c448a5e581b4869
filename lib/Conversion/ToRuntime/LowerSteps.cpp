//===- LowerSteps.cpp - Steps of a device as calls ------------------------===//

#include "LowerSteps.h"
#include "RuntimeCalls.h"

#include "neuroshard/Conversion/Jagged/Jagged.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace neuroshard {

namespace {
/// A pattern for an op that needs more of its exchange than its name.
template <typename OpT>
class ExchangePattern : public OpConversionPattern<OpT> {
public:
  ExchangePattern(const TypeConverter &converter, MLIRContext *context,
                  const LoweredExchanges &exchanges)
      : OpConversionPattern<OpT>(converter, context), exchanges(exchanges) {}

protected:
  const LoweredExchange &exchangeOf(OpT op) const {
    return exchanges.find(op.getExchangeAttr().getAttr())->second;
  }

private:
  const LoweredExchanges &exchanges;
};

struct LowerRoute : ExchangePattern<ir::RouteOp> {
  using ExchangePattern::ExchangePattern;

  LogicalResult
  matchAndRewrite(ir::RouteOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeBuilder b(op.getLoc(), rewriter);
    JaggedTensors jagged(op.getIds().getType(), adaptor.getIds());
    int64_t number = exchangeOf(op).number;
    Value weights = b.null();
    if (jagged.weights) {
      weights = b.readPointer(jagged.weights);
      b.call("nsrt_check_weights",
             {adaptor.getDevice().front(), b.i64(number),
              b.asI64(b.size(jagged.ids)), b.asI64(b.size(jagged.weights))});
    }
    Value routed = b.call(
        "nsrt_route",
        {adaptor.getDevice().front(), b.i64(number), b.readPointer(jagged.ids),
         b.asI64(b.size(jagged.ids)), b.readPointer(jagged.offsets),
         b.asI64(b.size(jagged.offsets)), weights},
        b.pointerType());
    rewriter.replaceOp(op, routed);
    return success();
  }
};

struct LowerRunLookup : OpConversionPattern<ir::RunLookupOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::RunLookupOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeBuilder b(op.getLoc(), rewriter);
    Value device = adaptor.getDevice(), routed = adaptor.getRouted();
    Value partials = b.call("nsrt_lookup", {device, routed}, b.pointerType());
    b.call("nsrt_results_start", {device, routed, partials});
    rewriter.replaceOp(op, partials);
    return success();
  }
};

/// The call that waits for the results of an exchange.
class ResultsWait {
public:
  ResultsWait(RuntimeBuilder &b, Value device, Value routed, Value partials)
      : b(b), device(device), routed(routed), partials(partials) {}

  /// How many rows the result of a lookup has; a static number is checked.
  Value rowsOf(RankedTensorType type, int64_t lookup) {
    SmallVector<Value> arguments = {device, routed, b.i64(lookup)};
    if (type.isDynamicDim(0))
      return b.call("nsrt_result_rows", arguments, b.getI64Type());
    arguments.push_back(b.i64(type.getDimSize(0)));
    return b.call("nsrt_expect_rows", arguments, b.getI64Type());
  }

  /// A buffer of a type with so many rows.
  Value allocate(RankedTensorType type, Value rows) {
    return b.allocateTensor(
        MemRefType::get({ShapedType::kDynamic, type.getDimSize(1)},
                        type.getElementType()),
        arith::IndexCastOp::create(b, b.getIndexType(), rows).getResult());
  }

  /// Lets the next result be written to `buffer` from a column on.
  void addTarget(Value buffer, int64_t column) {
    auto type = cast<MemRefType>(buffer.getType());
    types.push_back(b.i32(getElementCode(type.getElementType())));
    outs.push_back(b.pointerTo(buffer, column));
    strides.push_back(b.i64(type.getDimSize(1)));
  }

  void call() {
    b.call("nsrt_results_wait",
           {device, routed, partials, b.i64(outs.size()), b.arrayOf(types),
            b.arrayOf(outs), b.arrayOf(strides)});
  }

private:
  RuntimeBuilder &b;
  Value device, routed, partials;
  SmallVector<Value> types, outs, strides;
};

struct LowerExchangeResults : OpConversionPattern<ir::ExchangeResultsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::ExchangeResultsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeBuilder b(op.getLoc(), rewriter);
    ResultsWait wait(b, adaptor.getDevice(), adaptor.getRouted(),
                     adaptor.getPartials());
    SmallVector<Value> buffers, results;
    for (auto [lookup, value] : llvm::enumerate(op.getResults())) {
      auto type = cast<RankedTensorType>(value.getType());
      buffers.push_back(wait.allocate(type, wait.rowsOf(type, lookup)));
      wait.addTarget(buffers.back(), /*column=*/0);
    }
    wait.call();
    for (auto [buffer, value] : llvm::zip_equal(buffers, op.getResults()))
      results.push_back(
          b.toTensor(buffer, cast<RankedTensorType>(value.getType())));
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct LowerExchangeJoinedResults
    : ExchangePattern<ir::ExchangeJoinedResultsOp> {
  using ExchangePattern::ExchangePattern;

  LogicalResult
  matchAndRewrite(ir::ExchangeJoinedResultsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeBuilder b(op.getLoc(), rewriter);
    ResultsWait wait(b, adaptor.getDevice(), adaptor.getRouted(),
                     adaptor.getPartials());
    auto type = cast<RankedTensorType>(op.getType());
    ArrayAttr results = exchangeOf(op).results;
    Value buffer = wait.allocate(type, wait.rowsOf(type, /*lookup=*/0));
    if (!type.isDynamicDim(0)) // those of the others are checked, too
      for (size_t lookup = 1; lookup < results.size(); ++lookup)
        wait.rowsOf(type, lookup);
    int64_t column = 0;
    for (Type result : results.getAsValueRange<TypeAttr>()) {
      wait.addTarget(buffer, column);
      column += cast<RankedTensorType>(result).getDimSize(1);
    }
    wait.call();
    rewriter.replaceOp(op, b.toTensor(buffer, type));
    return success();
  }
};

struct LowerExchangeGradients : OpConversionPattern<ir::ExchangeGradientsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::ExchangeGradientsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeBuilder b(op.getLoc(), rewriter);
    Value device = adaptor.getDevice(), routed = adaptor.getRouted();
    SmallVector<Value> types, firsts, strides;
    for (Value gradient : adaptor.getGradients()) {
      Type element = cast<ShapedType>(gradient.getType()).getElementType();
      types.push_back(b.i32(getElementCode(element)));
      RowsPointer rows = b.readRows(gradient);
      firsts.push_back(rows.first);
      strides.push_back(b.asI64(rows.stride));
    }
    bool lasts = llvm::all_of(adaptor.getGradients(), isCallersTensor);
    Value partials =
        b.call("nsrt_gradients_pack",
               {device, routed, b.i64(firsts.size()), b.arrayOf(types),
                b.arrayOf(firsts), b.arrayOf(strides), b.i32(lasts)},
               b.pointerType());
    b.call("nsrt_gradients_start", {device, routed, partials});
    rewriter.replaceOp(op, partials);
    return success();
  }
};

struct LowerRunWeightsGradient : OpConversionPattern<ir::RunWeightsGradientOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::RunWeightsGradientOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeBuilder b(op.getLoc(), rewriter);
    JaggedTensors jagged(op.getIds().getType(), adaptor.getIds());
    Value out = b.allocateTensor(
        MemRefType::get({ShapedType::kDynamic}, b.getF32Type()),
        b.size(jagged.ids));
    b.call("nsrt_weights_gradient",
           {adaptor.getDevice().front(), adaptor.getRouted().front(),
            adaptor.getGradients().front(), b.pointerTo(out)});
    rewriter.replaceOp(
        op, b.toTensor(out, cast<RankedTensorType>(op.getResult().getType())));
    return success();
  }
};

struct LowerRunUpdate : OpConversionPattern<ir::RunUpdateOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::RunUpdateOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeBuilder b(op.getLoc(), rewriter);
    b.call("nsrt_update",
           {adaptor.getDevice(), b.i64(adaptor.getRouted().size()),
            b.arrayOf(adaptor.getRouted()), b.arrayOf(adaptor.getGradients()),
            adaptor.getLearningRate(), adaptor.getStep()});
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerRelease : OpConversionPattern<ir::ReleaseOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ir::ReleaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RuntimeBuilder b(op.getLoc(), rewriter);
    bool isRouted = isa<ir::RoutedType>(op.getValue().getType());
    b.call(isRouted ? "nsrt_routed_release" : "nsrt_partials_release",
           {adaptor.getDevice(), adaptor.getValue()});
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void populateStepPatterns(const TypeConverter &converter,
                          const LoweredExchanges &exchanges,
                          RewritePatternSet &patterns) {
  patterns.add<LowerRoute, LowerExchangeJoinedResults>(
      converter, patterns.getContext(), exchanges);
  patterns.add<LowerRunLookup, LowerExchangeResults, LowerExchangeGradients,
               LowerRunWeightsGradient, LowerRunUpdate, LowerRelease>(
      converter, patterns.getContext());
}

} // namespace neuroshard
