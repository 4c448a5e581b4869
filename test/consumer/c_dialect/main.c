/*===- main.c - Runs a pass in a project that knows no C++ ----------------===*/

#include <neuroshard-c/Dialect.h>

#include <mlir-c/Pass.h>

#include <stdio.h>

static void print(MlirStringRef part, void *userData) {
  fwrite(part.data, 1, part.length, (FILE *)userData);
}

int main(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  neuroshardRegisterAllDialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  neuroshardRegisterAllPasses();
  MlirModule module = mlirModuleCreateParse(
      context, mlirStringRefCreateFromCString(
                   "module attributes {neuroshard.batch = 64 : i64} {\n"
                   "  shard.grid @mesh(shape = 2x2)\n"
                   "  neuroshard.table @user : 1000 x 16 x f32\n"
                   "}"));
  MlirPassManager passes = mlirPassManagerCreate(context);
  MlirStringRef pipeline = mlirStringRefCreateFromCString(
      "neuroshard-to-planned{device-class=CPU algorithm=size}");
  if (mlirModuleIsNull(module) ||
      mlirLogicalResultIsFailure(mlirOpPassManagerAddPipeline(
          mlirPassManagerGetAsOpPassManager(passes), pipeline, print,
          stderr)) ||
      mlirLogicalResultIsFailure(
          mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module))))
    return 1;
  mlirOperationPrint(mlirModuleGetOperation(module), print, stdout);
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  return 0;
}
