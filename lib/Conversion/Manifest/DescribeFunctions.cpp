//===- DescribeFunctions.cpp - Signatures of host functions ---------------===//
//
// Conversion/Jagged decides which values jagged values and bundles become at
// the borders of functions; the manifest describes them.
//
//===----------------------------------------------------------------------===//

#include "DescribeFunctions.h"
#include "TouchesTensors.h"

using namespace mlir;

namespace neuroshard {

std::string nameOfType(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

std::vector<std::string> namesOfFeatures(ir::JaggedType type) {
  std::vector<std::string> names;
  for (StringAttr feature : type.getFeatures())
    names.push_back(feature.str());
  return names;
}

static ValueSpec makeValue(ValueKind kind, Type type = {}) {
  ValueSpec value;
  value.kind = kind;
  if (type)
    value.type = nameOfType(type);
  return value;
}

static ValueSpec makeTensor(Type element, ArrayRef<int64_t> shape) {
  ValueSpec value = makeValue(ValueKind::Tensor, element);
  for (int64_t size : shape)
    value.shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
  return value;
}

/// The tensors that a jagged value consists of.
static void addJaggedParts(ir::JaggedType type,
                           std::vector<ValueSpec> &values) {
  MLIRContext *context = type.getContext();
  values.push_back(makeTensor(type.getIdType(), ShapedType::kDynamic));
  values.push_back(
      makeTensor(IntegerType::get(context, 64), ShapedType::kDynamic));
  if (type.getWeighted())
    values.push_back(
        makeTensor(Float32Type::get(context), ShapedType::kDynamic));
}

/// Appends the values that a value of `type` becomes at the border of a
/// function.
static LogicalResult addParts(func::FuncOp function, Type type,
                              std::vector<ValueSpec> &values) {
  auto addAll = [&](ArrayRef<Type> types) -> LogicalResult {
    for (Type part : types)
      if (failed(addParts(function, part, values)))
        return failure();
    return success();
  };
  if (auto pending = dyn_cast<ir::PendingType>(type))
    return addAll(pending.getTypes());
  if (auto context = dyn_cast<ir::ContextType>(type))
    return addAll(context.getTypes());
  if (auto jagged = dyn_cast<ir::JaggedType>(type)) {
    addJaggedParts(jagged, values);
    return success();
  }
  if (isa<ir::DeviceType>(type))
    values.push_back(makeValue(ValueKind::Device));
  else if (isa<ir::RoutedType, ir::PartialsType>(type))
    values.push_back(makeValue(ValueKind::Handle));
  else if (auto shaped = dyn_cast<ShapedType>(type);
           shaped && shaped.hasRank() && !isa<VectorType>(type))
    values.push_back(makeTensor(shaped.getElementType(), shaped.getShape()));
  else if (type.isIndex())
    values.push_back(
        makeValue(ValueKind::Scalar, IntegerType::get(type.getContext(), 64)));
  else if (type.isIntOrFloat())
    values.push_back(makeValue(ValueKind::Scalar, type));
  else
    return function.emitOpError("is public, but host code cannot pass a value "
                                "of type ")
           << type << "; make the function private";
  return success();
}

/// The exchange that routes an argument of a function, itself or through
/// calls; null if none or a call is recursive.
static ir::ExchangeOp findExchange(BlockArgument argument, int depth = 0) {
  auto module = argument.getOwner()->getParent()->getParentOfType<ModuleOp>();
  for (OpOperand &use : argument.getUses()) {
    if (auto route = dyn_cast<ir::RouteOp>(use.getOwner()))
      return module.lookupSymbol<ir::ExchangeOp>(route.getExchangeAttr());
    auto call = dyn_cast<func::CallOp>(use.getOwner());
    auto callee =
        call ? module.lookupSymbol<func::FuncOp>(call.getCallee()) : nullptr;
    if (!callee || callee.isExternal() || depth > 8)
      continue;
    if (ir::ExchangeOp found =
            findExchange(callee.getArgument(use.getOperandNumber()), depth + 1))
      return found;
  }
  return {};
}

static ValueSpec describeJagged(BlockArgument argument) {
  auto type = cast<ir::JaggedType>(argument.getType());
  ValueSpec value = makeValue(ValueKind::Jagged, type.getIdType());
  value.weighted = type.getWeighted();
  value.features = namesOfFeatures(type);
  ir::ExchangeOp exchange = findExchange(argument);
  if (!exchange)
    return value;
  auto module = exchange->getParentOfType<ModuleOp>();
  for (auto [i, other] : llvm::enumerate(module.getOps<ir::ExchangeOp>()))
    if (other == exchange)
      value.exchange = static_cast<int32_t>(i);
  return value;
}

static FailureOr<FunctionSpec> describe(func::FuncOp function) {
  FunctionSpec result;
  result.name = function.getName();
  result.touchesTensors = touchesTensors(function);
  for (BlockArgument argument : function.getArguments()) {
    if (isa<ir::JaggedType>(argument.getType()))
      result.arguments.push_back(describeJagged(argument));
    else if (failed(addParts(function, argument.getType(), result.arguments)))
      return failure();
  }
  for (Type type : function.getResultTypes())
    if (failed(addParts(function, type, result.results)))
      return failure();
  return result;
}

FailureOr<std::vector<FunctionSpec>> describeFunctions(ModuleOp module) {
  std::vector<FunctionSpec> functions;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    FailureOr<FunctionSpec> described = describe(function);
    if (failed(described))
      return failure();
    functions.push_back(std::move(*described));
  }
  return functions;
}

} // namespace neuroshard
