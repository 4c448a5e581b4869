//===- neuroshard-plugin.cpp - The dialect and passes for any mlir-opt ----===//
///
/// \file
/// The two entry points that MLIR's drivers look for in a library named by
/// --load-dialect-plugin and --load-pass-plugin.
//===----------------------------------------------------------------------===//

#include "neuroshard/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

static constexpr const char *kName = "NeuroShard";

/// Also MLIR's dialects with their interface models and translations: our
/// passes make ops of them, and a driver need not have registered them all.
/// What is registered already stays as it is.
static void registerDialects(mlir::DialectRegistry *registry) {
  neuroshard::registerAllDialects(*registry);
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, kName, NEUROSHARD_VERSION, registerDialects};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, kName, NEUROSHARD_VERSION,
          neuroshard::registerOwnPasses};
}
