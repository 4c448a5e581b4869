/*===- dialect.c - The dialect, its passes and its plans from C -----------===*/

// RUN: %c_programs/neuroshard-c-dialect 2>&1 | FileCheck %s

#include "neuroshard-c/Dialect.h"

#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Pass.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const kModel =
    "!ids = !neuroshard.jagged<[\"user\", \"item\"], i64>\n"
    "module attributes {neuroshard.batch = 64 : i64} {\n"
    "  neuroshard.table private @user : 1000000 x 64 x f32\n"
    "    {optimizer = #neuroshard.optimizer<rowwise_adagrad>}\n"
    "  neuroshard.table private @item : 1000 x 16 x f32\n"
    "  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>,\n"
    "                                     tensor<?x16xf32>) {\n"
    "    %u = neuroshard.lookup sum @user[%ids, \"user\"]\n"
    "      : !ids -> tensor<?x64xf32>\n"
    "    %i = neuroshard.lookup mean @item[%ids, \"item\"]\n"
    "      : !ids -> tensor<?x16xf32>\n"
    "    return %u, %i : tensor<?x64xf32>, tensor<?x16xf32>\n"
    "  }\n"
    "}\n";

static MlirStringRef text(const char *string) {
  return mlirStringRefCreateFromCString(string);
}

static void print(MlirStringRef part, void *userData) {
  (void)userData;
  fwrite(part.data, 1, part.length, stdout);
}

/* Shows an error with a prefix of its own, so that the tests see who told. */
static MlirLogicalResult show(MlirDiagnostic diagnostic, void *userData) {
  printf("%s: ", (const char *)userData);
  mlirDiagnosticPrint(diagnostic, print, NULL);
  printf("\n");
  return mlirLogicalResultSuccess();
}

static MlirContext createContext(const char *name) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  neuroshardRegisterAllDialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirContextAttachDiagnosticHandler(context, show, (void *)name, NULL);
  return context;
}

static void require(bool holds, const char *what) {
  if (holds)
    return;
  printf("failed: %s\n", what);
  exit(1);
}

/* A compiler that only reads and writes the IR registers the dialect alone. */
static void parseWithTheDialectAlone(void) {
  MlirContext context = mlirContextCreate();
  mlirDialectHandleRegisterDialect(mlirGetDialectHandle__neuroshard__(),
                                   context);
  MlirModule module = mlirModuleCreateParse(
      context, text("neuroshard.table @t : 10 x 4 x f32"));
  require(!mlirModuleIsNull(module), "parse");
  mlirOperationPrint(mlirModuleGetOperation(module), print, NULL);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
}

static void makeTypes(void) {
  MlirContext context = createContext("types");
  MlirLocation location = mlirLocationUnknownGet(context);
  MlirType i64 = mlirIntegerTypeGet(context, 64);
  MlirStringRef names[] = {text("user"), text("item")};
  MlirType type = neuroshardJaggedTypeGetChecked(location, 2, names, i64, true);
  mlirTypePrint(type, print, NULL);
  printf("\n");
  require(neuroshardTypeIsAJagged(type), "is jagged");
  require(!neuroshardTypeIsAJagged(i64), "i64 is not jagged");
  require(
      mlirTypeIDEqual(mlirTypeGetTypeID(type), neuroshardJaggedTypeGetTypeID()),
      "type id");
  require(neuroshardJaggedTypeGetNumFeatures(type) == 2, "two features");
  require(neuroshardJaggedTypeIsWeighted(type), "weighted");
  require(mlirTypeEqual(neuroshardJaggedTypeGetIdType(type), i64), "ids");
  print(neuroshardJaggedTypeGetFeature(type, 1), NULL);
  require(neuroshardJaggedTypeGetFeature(type, 2).length == 0, "no third");
  require(neuroshardJaggedTypeGetFeature(type, -1).length == 0, "none before");
  printf(" is feature 1\n");

  MlirType f32 = mlirF32TypeGet(context), null = {NULL};
  require(mlirTypeIsNull(
              neuroshardJaggedTypeGetChecked(location, 2, names, f32, false)),
          "no ids of f32");
  require(mlirTypeIsNull(
              neuroshardJaggedTypeGetChecked(location, 2, names, null, false)),
          "no ids of null");
  mlirContextDestroy(context);
}

static MlirLogicalResult runPipeline(MlirContext context, MlirModule module,
                                     const char *pipeline) {
  MlirPassManager passes = mlirPassManagerCreate(context);
  MlirLogicalResult result = mlirOpPassManagerAddPipeline(
      mlirPassManagerGetAsOpPassManager(passes), text(pipeline), print, NULL);
  if (mlirLogicalResultIsSuccess(result))
    result = mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module));
  mlirPassManagerDestroy(passes);
  return result;
}

static void compile(void) {
  MlirContext context = createContext("compile");
  MlirModule module = mlirModuleCreateParse(context, text(kModel));
  require(!mlirModuleIsNull(module), "parse the model");
  MlirStringRef any = {NULL, 0};
  require(mlirLogicalResultIsFailure(
              neuroshardModuleGetPlanJson(module, any, print, NULL)),
          "no plan yet");
  require(mlirLogicalResultIsFailure(
              runPipeline(context, module, "neuroshard-plan{topology=2xP100}")),
          "unknown class");
  require(mlirLogicalResultIsSuccess(runPipeline(
              context, module,
              "neuroshard-to-partitioned{topology=2xCPU cost-model=roofline "
              "algorithm=size training=true}")),
          "to partitioned");
  mlirOperationPrint(mlirModuleGetOperation(module), print, NULL);
  require(mlirLogicalResultIsSuccess(
              neuroshardModuleGetPlanJson(module, text("plan"), print, NULL)),
          "plan");
  require(mlirLogicalResultIsFailure(
              neuroshardModuleGetPlanJson(module, text("p2"), print, NULL)),
          "no such plan");
  require(mlirLogicalResultIsSuccess(runPipeline(
              context, module, "neuroshard-to-native{program=program0}")),
          "to native");
  mlirOperationPrint(mlirModuleGetOperation(module), print, NULL);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
}

int main(void) {
  // CHECK: neuroshard.table @t : 10 x 4 x f32
  parseWithTheDialectAlone();

  // CHECK: !neuroshard.jagged<["user", "item"], i64, weighted>
  // CHECK: item is feature 1
  // CHECK: types: {{.*}}f32
  // CHECK: types: expected a type of the ids, got null
  makeTypes();

  // CHECK:       compile: the module has no plan
  // CHECK:       compile: topology: unknown device class 'P100'
  // CHECK:       neuroshard.plan @plan on @cluster
  // CHECK:       neuroshard.device_program @program0 for [0]
  // CHECK-LABEL: func.func @embeddings_update
  // CHECK:         neuroshard.run_update
  // CHECK:       "schema": "neuroshard.plan.v1"
  // CHECK:         {"name":"user_0","table":"user",{{.*}}"devices":[0],
  // CHECK:       compile: the module has no plan 'p2'
  // CHECK:       llvm.func @embeddings_start
  // CHECK-NOT:   neuroshard.table
  neuroshardRegisterAllPasses();
  mlirRegisterNeuroShardPasses();
  compile();

  // CHECK: done
  printf("done\n");
  return 0;
}
