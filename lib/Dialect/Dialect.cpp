//===- Dialect.cpp - Registration of the dialect --------------------------===//

#include "neuroshard/Dialect/DeviceClassesAttr.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "Bytecode.h"
#include "Interfaces.h"

using namespace mlir;
using namespace neuroshard::ir;

#include "neuroshard/Dialect/NeuroShardDialect.cpp.inc"
#include "neuroshard/Dialect/NeuroShardEnums.cpp.inc"

void NeuroShardDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "neuroshard/Dialect/NeuroShardOps.cpp.inc"
      >();
  addInterfaces<InlinerInterface, AsmInterface, BytecodeInterface>();
}

Operation *NeuroShardDialect::materializeConstant(OpBuilder &builder,
                                                  Attribute value, Type type,
                                                  Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult
NeuroShardDialect::verifyOperationAttribute(Operation *op,
                                            NamedAttribute attribute) {
  if (attribute.getName() == kPlanningAttrName) {
    if (isa<ModuleOp>(op) && isa<DictionaryAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("attribute 'neuroshard.planning' must be a "
                           "dictionary on a module, got: ")
           << attribute.getValue();
  }
  if (attribute.getName() == kDeviceClassesAttrName) {
    auto list = dyn_cast<ArrayAttr>(attribute.getValue());
    if (isa<TopologyOp>(op) && list &&
        llvm::all_of(list, llvm::IsaPred<DictionaryAttr>))
      return success();
    return op->emitOpError("attribute 'neuroshard.device_classes' must be a "
                           "list of dictionaries on a topology, got: ")
           << attribute.getValue();
  }
  if (attribute.getName() == kPlanAttrName) {
    if (isa<FunctionOpInterface>(op) &&
        isa<FlatSymbolRefAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("attribute 'neuroshard.plan' must be a plan's "
                           "symbol, such as @plan, on a function, got: ")
           << attribute.getValue();
  }
  if (attribute.getName() != kBatchAttrName)
    return op->emitOpError("unknown attribute '")
           << neuroshard::printable(attribute.getName().getValue())
           << "'; the dialect defines 'neuroshard.batch' and "
              "'neuroshard.planning' (on a module), "
              "'neuroshard.device_classes' (on a topology) and "
              "'neuroshard.plan' (on a function)";
  auto batch = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!isa<ModuleOp>(op) || !batch || !batch.getType().isInteger(64) ||
      batch.getInt() <= 0)
    return op->emitOpError("attribute 'neuroshard.batch' must be a positive "
                           "i64 on a module, got: ")
           << attribute.getValue();
  return success();
}
