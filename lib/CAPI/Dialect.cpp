//===- Dialect.cpp - The dialect and passes for C -------------------------===//

#include "neuroshard-c/Dialect.h"

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/InitAll.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/FindPlan.h"
#include "neuroshard/Transforms/PlannerConversion.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"

#include <mutex>

using namespace mlir;
using namespace neuroshard;

using ir::JaggedType;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(NeuroShard, neuroshard,
                                      ir::NeuroShardDialect)

void neuroshardRegisterAllDialects(MlirDialectRegistry registry) {
  registerAllDialects(*unwrap(registry));
}

void mlirRegisterNeuroShardPasses(void) { neuroshardRegisterAllPasses(); }

void neuroshardRegisterAllPasses(void) {
  static std::once_flag once;
  std::call_once(once, registerOwnPasses);
}

bool neuroshardTypeIsAJagged(MlirType type) {
  return isa<JaggedType>(unwrap(type));
}

MlirTypeID neuroshardJaggedTypeGetTypeID(void) {
  return wrap(JaggedType::getTypeID());
}

MlirType neuroshardJaggedTypeGetChecked(MlirLocation location,
                                        intptr_t numFeatures,
                                        const MlirStringRef *features,
                                        MlirType idType, bool weighted) {
  Location loc = unwrap(location);
  loc.getContext()->getOrLoadDialect<ir::NeuroShardDialect>();
  SmallVector<StringAttr> names;
  for (intptr_t i = 0; i < numFeatures; ++i)
    names.push_back(StringAttr::get(loc.getContext(), unwrap(features[i])));
  if (mlirTypeIsNull(idType)) {
    emitError(loc, "expected a type of the ids, got null");
    return wrap(Type());
  }
  return wrap(Type(JaggedType::getChecked(
      [&] { return emitError(loc); }, loc.getContext(),
      ArrayRef<StringAttr>(names), unwrap(idType), weighted)));
}

intptr_t neuroshardJaggedTypeGetNumFeatures(MlirType type) {
  return static_cast<intptr_t>(
      cast<JaggedType>(unwrap(type)).getFeatures().size());
}

MlirStringRef neuroshardJaggedTypeGetFeature(MlirType type, intptr_t position) {
  ArrayRef<StringAttr> features = cast<JaggedType>(unwrap(type)).getFeatures();
  if (position < 0 || position >= static_cast<intptr_t>(features.size()))
    return wrap(llvm::StringRef());
  return wrap(features[static_cast<size_t>(position)].getValue());
}

MlirType neuroshardJaggedTypeGetIdType(MlirType type) {
  return wrap(cast<JaggedType>(unwrap(type)).getIdType());
}

bool neuroshardJaggedTypeIsWeighted(MlirType type) {
  return cast<JaggedType>(unwrap(type)).getWeighted();
}

static LogicalResult writePlanOf(ModuleOp module, llvm::StringRef name,
                                 llvm::function_ref<void(std::string)> write) {
  FailureOr<ir::PlanOp> op = findPlan(module, name);
  if (failed(op))
    return failure();
  if (!*op)
    return name.empty() ? emitError(module.getLoc(), "the module has no plan")
                        : emitError(module.getLoc(), "the module has no plan '")
                              << printable(name) << "'";
  FailureOr<ShardingPlan> plan = planFromIR(*op);
  if (failed(plan))
    return failure();
  write(writePlan(*plan));
  return success();
}

MlirLogicalResult neuroshardModuleGetPlanJson(MlirModule module,
                                              MlirStringRef name,
                                              MlirStringCallback callback,
                                              void *userData) {
  return wrap(
      writePlanOf(unwrap(module), unwrap(name), [&](const std::string &json) {
        callback(wrap(llvm::StringRef(json)), userData);
      }));
}
