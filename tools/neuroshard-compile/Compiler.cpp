//===- Compiler.cpp - Compiles a model to an artifact ---------------------===//
//
// Lowers the module level by level and writes the plan, the reference, one
// library per device program, and the manifest.
//
//===----------------------------------------------------------------------===//

#include "Compiler.h"

#include "ArtifactDirectory.h"
#include "GpuCompiler.h"
#include "Lowering.h"
#include "Raising.h"

#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Conversion/Manifest/IRToManifest.h"
#include "neuroshard/Conversion/Native/NativeTarget.h"
#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace neuroshard {

namespace {
class Compiler {
public:
  Compiler(const CompileOptions &options, ModuleOp module)
      : options(options), module(module),
        loc(UnknownLoc::get(module.getContext())) {}

  LogicalResult run();

private:
  LogicalResult checkTables();
  LogicalResult raise();
  LogicalResult goToPartitioned();
  LogicalResult compileReference();
  LogicalResult compilePrograms();
  LogicalResult compileLibrary(ModuleOp program, StringRef name);
  LogicalResult writeIR(ModuleOp level, StringRef name);
  LogicalResult writeManifest();
  LogicalResult commit();

  const CompileOptions &options;
  ModuleOp module;
  Location loc;
  ArtifactDirectory directory;
  /// What will be the file of --weights-file; null: none.
  std::unique_ptr<llvm::MemoryBuffer> weights;
  Manifest manifest;
  std::vector<FunctionSpec> referenceFunctions;
};
} // namespace

/// Writes the IR of a level, if asked to.
LogicalResult Compiler::writeIR(ModuleOp level, StringRef name) {
  if (!options.emitIR)
    return success();
  std::string text;
  llvm::raw_string_ostream(text) << level << "\n";
  return directory.write(("ir/" + name + ".mlir").str(), text, loc);
}

/// A module without tables is one that was not raised, or has no lookup.
LogicalResult Compiler::checkTables() {
  if (!module.getOps<ir::TableOp>().empty())
    return success();
  return emitError(module.getLoc())
         << "expected a module with at least one 'neuroshard.table'"
         << (options.raises ? "; nothing in it was raised to a lookup"
                            : "; with --raise tables and lookups are made of "
                              "what other dialects spell out");
}

/// Keeps the rows of constants until the compilation has succeeded: a file of
/// an earlier one belongs to the artifact that it made.
LogicalResult Compiler::raise() {
  RaiseLookupsOptions raising = options.raise;
  if (raising.weightsFile.empty())
    return raiseLookups(module, raising, options);
  const StringRef name = "weights.safetensors";
  raising.weightsFile = directory.path(name);
  if (failed(raiseLookups(module, raising, options)))
    return failure();
  auto taken = directory.take(name, loc);
  if (failed(taken))
    return failure();
  weights = std::move(*taken);
  return success();
}

LogicalResult Compiler::goToPartitioned() {
  if (isPartitioned(module)) {
    if (options.beforePartitioning.empty())
      return success();
    return emitError(loc) << llvm::join(options.beforePartitioning, ", ")
                          << ": no effect on this input, which is partitioned "
                             "already";
  }
  if (options.raises && (failed(writeIR(module, "0-input")) || failed(raise())))
    return failure();
  if (failed(writeIR(module, "1-logical")) || failed(checkTables()) ||
      failed(plan(module, options)) || failed(writeIR(module, "2-planned")))
    return failure();
  if (options.reference && failed(compileReference()))
    return failure();
  return success(succeeded(shard(module, options)) &&
                 succeeded(writeIR(module, "3-sharded")) &&
                 succeeded(partition(module, options)));
}

/// The library `name`, from a module of standard dialects.
LogicalResult Compiler::compileLibrary(ModuleOp program, StringRef name) {
  std::string library = (name + ".so").str();
  NativeOptions native = options.native;
  native.keepIntermediates = options.emitIR;
  if (failed(compileToSharedLibrary(program, native, directory.path(library))))
    return failure();
  if (!options.emitIR)
    return success();
  for (StringRef kind : {".mlir", ".ll", ".o"}) {
    std::string to = ("ir/" + name + "-native" + kind).str();
    if (failed(directory.move(library + kind.str(), to, loc)))
      return failure();
  }
  return success();
}

LogicalResult Compiler::compileReference() {
  OwningOpRef<ModuleOp> logical = module.clone();
  if (failed(outline(*logical, options)))
    return failure();
  OwningOpRef<ModuleOp> lowered = logical->clone();
  if (failed(lowerReference(*lowered, options)) ||
      failed(writeIR(*lowered, "reference")))
    return failure();
  FailureOr<std::vector<FunctionSpec>> functions =
      describeReference(*logical, *lowered);
  if (failed(functions))
    return failure();
  referenceFunctions = std::move(*functions);
  return compileLibrary(*lowered, "reference");
}

LogicalResult Compiler::compilePrograms() {
  for (auto program : module.getOps<ir::DeviceProgramOp>()) {
    StringRef name = program.getSymName();
    OwningOpRef<ModuleOp> host = module.clone();
    if (failed(convertToRuntime(*host, name, options)) ||
        failed(writeIR(*host, name)) || failed(compileLibrary(*host, name)))
      return failure();
    manifest.programs.push_back({(name + ".so").str()});
    if (options.gpu.archs.empty() && !options.emulate)
      continue;
    if (failed(compileForGpu(options, module, name, directory)))
      return failure();
  }
  return success();
}

/// To be called last: the manifest has the hashes of all other files.
LogicalResult Compiler::writeManifest() {
  if (options.reference) {
    manifest.reference = {"reference.so", std::move(referenceFunctions)};
  }
  FailureOr<std::map<std::string, std::string>> files =
      directory.hashFiles(loc);
  if (failed(files))
    return failure();
  manifest.files = std::move(*files);
  return directory.write(
      kManifestFile, sealManifest(neuroshard::writeManifest(manifest)), loc);
}

/// Puts all files in place, once nothing but a rename can fail.
LogicalResult Compiler::commit() {
  if (failed(directory.checkReplaceable(loc)))
    return failure();
  if (weights && failed(writeWeightsFile(options, weights->getBuffer(), loc)))
    return failure();
  return directory.commit(loc);
}

LogicalResult Compiler::run() {
  FailureOr<NativeTarget> target =
      findNativeTarget(module.getLoc(), options.native);
  if (failed(target) || failed(checkWeightsFile(options, loc)) ||
      failed(directory.create(options.output, loc)))
    return failure();
  if (options.emitIR && failed(directory.createFolder("ir", loc)))
    return failure();
  if (failed(goToPartitioned()) || failed(writeIR(module, "4-partitioned")))
    return failure();
  FailureOr<Manifest> described = describeArtifact(module);
  FailureOr<std::string> planJson = getPlanJson(module, options.plan.planName);
  if (failed(described) || failed(planJson))
    return failure();
  manifest = std::move(*described);
  manifest.targetCpu = target->cpu;
  manifest.targetFeatures = target->instructionSets;
  if (failed(compilePrograms()) ||
      failed(directory.write("plan.json", *planJson, loc)) ||
      failed(writeManifest()))
    return failure();
  return commit();
}

LogicalResult compile(const CompileOptions &options, llvm::SourceMgr &sources,
                      MLIRContext &context) {
  // Those of torch-mlir and StableHLO are found by name.
  context.allowUnregisteredDialects(options.raises);
  OwningOpRef<ModuleOp> module = readModule(options.input, sources, context);
  if (!module)
    return failure();
  return Compiler(options, *module).run();
}

} // namespace neuroshard
