//===- DialectCAPI.cpp - Fuzzes the dialect's C API -----------------------===//
///
/// \file
/// The first line of an input has names of features and a plan's name, the
/// others are a module.
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "TokenMutator.h"
#include "neuroshard-c/Dialect.h"

#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"

#include <vector>

using namespace neuroshard::fuzz;

namespace {

MlirStringRef refOf(std::string_view text) {
  return {text.data(), text.size()};
}

/// A context that counts the errors in `errors`.
MlirContext makeContext(int *errors) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__neuroshard__(),
                                 registry);
  neuroshardRegisterAllDialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirContextAttachDiagnosticHandler(
      context,
      [](MlirDiagnostic diagnostic, void *count) {
        *static_cast<int *>(count) +=
            mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticError;
        return mlirLogicalResultSuccess();
      },
      errors, nullptr);
  return context;
}

std::vector<std::string_view> wordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t space; (space = line.find(' ')) != line.npos;) {
    words.push_back(line.substr(0, space));
    line.remove_prefix(space + 1);
  }
  words.push_back(line);
  return words;
}

void makeJagged(MlirContext context, const std::vector<std::string_view> &words,
                MlirType idType, const int &errors) {
  std::vector<MlirStringRef> features;
  for (std::string_view word : words)
    features.push_back(refOf(word));
  int before = errors;
  auto count = static_cast<intptr_t>(features.size());
  MlirType type =
      neuroshardJaggedTypeGetChecked(mlirLocationUnknownGet(context), count,
                                     features.data(), idType, words.size() % 2);
  if (mlirTypeIsNull(type)) {
    require(errors > before, "a type that is refused has an error");
    return;
  }
  require(neuroshardTypeIsAJagged(type) &&
              neuroshardJaggedTypeGetNumFeatures(type) == count &&
              mlirTypeEqual(neuroshardJaggedTypeGetIdType(type), idType) &&
              neuroshardJaggedTypeIsWeighted(type) == words.size() % 2,
          "a type has what it was made of");
  for (intptr_t position : {intptr_t{-1}, intptr_t{0}, count - 1, count})
    neuroshardJaggedTypeGetFeature(type, position);
}

void append(MlirStringRef part, void *text) {
  static_cast<std::string *>(text)->append(part.data, part.length);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int errors = 0;
  static int inputs = 0;
  static MlirContext context = {nullptr};
  if (inputs++ % 256 == 0) {
    if (!mlirContextIsNull(context))
      mlirContextDestroy(context);
    context = makeContext(&errors);
  }
  std::string_view input = textOf(data, size);
  size_t end = input.find('\n');
  std::vector<std::string_view> words = wordsOf(input.substr(0, end));
  for (MlirType idType :
       {mlirIntegerTypeGet(context, 32), mlirIntegerTypeGet(context, 64),
        mlirIntegerTypeGet(context, 7), mlirF32TypeGet(context)})
    makeJagged(context, words, idType, errors);

  // MLIR reads texts with a zero at their end.
  std::string text(end == input.npos ? "" : input.substr(end + 1));
  MlirModule module = mlirModuleCreateParse(context, refOf(text));
  if (mlirModuleIsNull(module))
    return 0;
  for (std::string_view name : {std::string_view(), words.back()}) {
    std::string plan;
    int before = errors;
    MlirLogicalResult result =
        neuroshardModuleGetPlanJson(module, refOf(name), append, &plan);
    require(mlirLogicalResultIsSuccess(result) ? !plan.empty()
                                               : errors > before,
            "there is a plan or an error");
  }
  mlirModuleDestroy(module);
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateTokens)
