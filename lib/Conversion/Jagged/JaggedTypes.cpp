//===- JaggedTypes.cpp - Jagged values as tensors -------------------------===//

#include "neuroshard/Conversion/Jagged/Jagged.h"

using namespace mlir;

namespace neuroshard {

JaggedTensors::JaggedTensors(ir::JaggedType type, ValueRange tensors)
    : type(type), ids(tensors[0]), offsets(tensors[1]),
      weights(type.getWeighted() ? tensors[2] : Value()) {}

Value JaggedTensors::batchSize(LoopBuilder &b) const {
  Value numBags = b.sub(b.size(offsets), b.index(1));
  int64_t numFeatures = type.getFeatures().size();
  if (numFeatures == 1)
    return numBags;
  return b.div(numBags, b.index(numFeatures));
}

Value JaggedTensors::firstId(LoopBuilder &b, int64_t feature, Value batch,
                             Value bag) const {
  Value position = b.add(b.mul(b.index(feature), batch), bag);
  return b.load(offsets, position);
}

Value JaggedTensors::numIds(LoopBuilder &b, int64_t feature) const {
  Value batch = batchSize(b), zero = b.index(0);
  return b.sub(firstId(b, feature + 1, batch, zero),
               firstId(b, feature, batch, zero));
}

/// Appends the types that `type` is converted to.
static LogicalResult flatten(const TypeConverter &converter,
                             ArrayRef<Type> types,
                             SmallVectorImpl<Type> &flat) {
  for (Type type : types)
    if (failed(converter.convertType(type, flat)))
      return failure();
  return success();
}

void addJaggedTypeConversions(TypeConverter &converter) {
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](ir::JaggedType type,
         SmallVectorImpl<Type> &parts) -> std::optional<LogicalResult> {
        auto vectorOf = [](Type element) {
          return RankedTensorType::get({ShapedType::kDynamic}, element);
        };
        MLIRContext *context = type.getContext();
        parts.push_back(vectorOf(type.getIdType()));
        parts.push_back(vectorOf(IntegerType::get(context, 64)));
        if (type.getWeighted())
          parts.push_back(vectorOf(Float32Type::get(context)));
        return success();
      });
  converter.addConversion(
      [&converter](ir::PendingType type, SmallVectorImpl<Type> &parts)
          -> std::optional<LogicalResult> {
        return flatten(converter, type.getTypes(), parts);
      });
  converter.addConversion(
      [&converter](ir::ContextType type, SmallVectorImpl<Type> &parts)
          -> std::optional<LogicalResult> {
        return flatten(converter, type.getTypes(), parts);
      });
}

} // namespace neuroshard
