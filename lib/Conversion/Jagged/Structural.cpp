//===- Structural.cpp - Jagged values across functions and loops ----------===//
//
// MLIR's patterns convert calls, returns, branches and scf. Functions have a
// pattern here that keeps the attributes of arguments.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Jagged/Jagged.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"

using namespace mlir;

namespace neuroshard {

namespace {
class ConvertFunction : public OpConversionPattern<func::FuncOp> {
public:
  ConvertFunction(const TypeConverter &converter, MLIRContext *context,
                  StringRef deviceAttr)
      : OpConversionPattern(converter, context), deviceAttr(deviceAttr) {}

  LogicalResult
  matchAndRewrite(func::FuncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    SmallVector<Attribute> argumentAttrs, resultAttrs;
    SmallVector<Type> resultTypes;
    for (auto [i, type] : llvm::enumerate(op.getArgumentTypes())) {
      SmallVector<Type> types;
      if (failed(getTypeConverter()->convertType(type, types)))
        return rewriter.notifyMatchFailure(
            op, "an argument's type has no conversion");
      signature.addInputs(i, types);
      addAttrs(argumentAttrs, attrsOf(op.getArgAttrDict(i), type, rewriter),
               types.size());
    }
    for (auto [i, type] : llvm::enumerate(op.getResultTypes())) {
      size_t before = resultTypes.size();
      if (failed(getTypeConverter()->convertType(type, resultTypes)))
        return rewriter.notifyMatchFailure(op,
                                           "a result's type has no conversion");
      addAttrs(resultAttrs, op.getResultAttrDict(i),
               resultTypes.size() - before);
    }
    if (!op.isExternal() &&
        failed(rewriter.convertRegionTypes(&op.getBody(), *getTypeConverter(),
                                           &signature)))
      return rewriter.notifyMatchFailure(
          op, "blocks have types without a conversion");
    rewriter.modifyOpInPlace(op, [&] {
      op.setType(
          rewriter.getFunctionType(signature.getConvertedTypes(), resultTypes));
      op.setAllArgAttrs(argumentAttrs);
      op.setAllResultAttrs(resultAttrs);
    });
    return success();
  }

private:
  /// The attributes of one argument of `type`.
  DictionaryAttr attrsOf(DictionaryAttr attrs, Type type,
                         OpBuilder &builder) const {
    if (deviceAttr.empty() || !isa<ir::DeviceType>(type))
      return attrs;
    NamedAttrList list(attrs);
    list.set(deviceAttr, builder.getUnitAttr());
    return list.getDictionary(builder.getContext());
  }

  /// Drops the attributes of an argument that became several.
  void addAttrs(SmallVectorImpl<Attribute> &to, DictionaryAttr attrs,
                size_t count) const {
    if (!attrs || count != 1)
      attrs = DictionaryAttr::get(getContext());
    to.append(count, attrs);
  }

  StringRef deviceAttr;
};
} // namespace

void populateStructuralPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns,
                                ConversionTarget &target,
                                StringRef deviceAttr) {
  patterns.add<ConvertFunction>(converter, patterns.getContext(), deviceAttr);
  populateCallOpTypeConversionPattern(patterns, converter);
  populateReturnOpTypeConversionPattern(patterns, converter);
  populateBranchOpInterfaceTypeConversionPattern(patterns, converter);
  scf::populateSCFStructuralTypeConversions(converter, patterns);

  target.addIllegalDialect<ir::NeuroShardDialect>();
  target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp op) {
    return converter.isSignatureLegal(op.getFunctionType()) &&
           converter.isLegal(&op.getBody());
  });
  target.markUnknownOpDynamicallyLegal(
      [&](Operation *op) { return converter.isLegal(op); });
}

} // namespace neuroshard
