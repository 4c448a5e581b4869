//===- neuroshard-c/Dialect.h - The dialect and passes for C ------*- C -*-===//
///
/// \file
/// The dialect `neuroshard` for programs that use MLIR's C API, by the rules of
/// that API: libneuroshard_c.so. It comes with libneuroshard_mlir_c.so, which
/// is MLIR's C API itself (without the execution engine) on the shared libMLIR.
/// A program that links them must not bring MLIR a second time, as static
/// libraries.
///
/// Names begin with `neuroshard`, but for the handle of the dialect, which a
/// macro of MLIR names.
///
/// Errors go to the diagnostic handlers of the MlirContext.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_C_DIALECT_H
#define NEUROSHARD_C_DIALECT_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

/// mlirGetDialectHandle__neuroshard__(): the dialect alone, to read and write
/// its IR.
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(NeuroShard, neuroshard);

/// Adds the dialect, MLIR's dialects, and the interface models and translations
/// with which our passes and pipelines run.
MLIR_CAPI_EXPORTED void
neuroshardRegisterAllDialects(MlirDialectRegistry registry);

/// Registers our passes and pipelines by their names (docs/reference/passes.md)
/// for mlirParsePassPipeline() and mlirOpPassManagerAddPipeline(). Once per
/// process; further calls do nothing. Call
/// mlirRegisterAllPasses() as well if a pipeline names MLIR's passes.
MLIR_CAPI_EXPORTED void neuroshardRegisterAllPasses(void);

/// Deprecated name of neuroshardRegisterAllPasses(), which goes with 1.0.
MLIR_CAPI_EXPORTED void mlirRegisterNeuroShardPasses(void);

//===----------------------------------------------------------------------===//
// !neuroshard.jagged<["user", "item"], i64, weighted>
//===----------------------------------------------------------------------===//

MLIR_CAPI_EXPORTED bool neuroshardTypeIsAJagged(MlirType type);

MLIR_CAPI_EXPORTED MlirTypeID neuroshardJaggedTypeGetTypeID(void);

/// Ids of `numFeatures` features for one batch. `idType` is i32 or i64; names
/// are not empty and differ. Otherwise the context of `idType` gets an error at
/// `location` and the result is null. Loads the dialect into the context.
MLIR_CAPI_EXPORTED MlirType neuroshardJaggedTypeGetChecked(
    MlirLocation location, intptr_t numFeatures, const MlirStringRef *features,
    MlirType idType, bool weighted);

MLIR_CAPI_EXPORTED intptr_t neuroshardJaggedTypeGetNumFeatures(MlirType type);

/// Name of a feature, valid as long as the context. Empty if `position` is out
/// of range.
MLIR_CAPI_EXPORTED MlirStringRef
neuroshardJaggedTypeGetFeature(MlirType type, intptr_t position);

MLIR_CAPI_EXPORTED MlirType neuroshardJaggedTypeGetIdType(MlirType type);

MLIR_CAPI_EXPORTED bool neuroshardJaggedTypeIsWeighted(MlirType type);

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Gives the plan of a module as JSON (schema neuroshard.plan.v1) to
/// `callback`, whole, in one call. `name` is the plan's symbol; empty: the only
/// one of the module. Fails with an error when there is no such plan.
MLIR_CAPI_EXPORTED MlirLogicalResult
neuroshardModuleGetPlanJson(MlirModule module, MlirStringRef name,
                            MlirStringCallback callback, void *userData);

#ifdef __cplusplus
}
#endif

#endif // NEUROSHARD_C_DIALECT_H
