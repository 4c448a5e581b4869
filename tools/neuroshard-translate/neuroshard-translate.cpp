//===- neuroshard-translate.cpp - Between IR and JSON ---------------------===//

#include "Translations.h"

#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  neuroshard::registerTranslations();
  return mlir::failed(mlir::mlirTranslateMain(
      argc, argv, "NeuroShard workload and plan translation driver"));
}
