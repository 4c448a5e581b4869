//===- GpuCompiler.cpp - Compiles device programs for GPUs ----------------===//

#include "GpuCompiler.h"

#include "neuroshard/Conversion/ConvertToGpu.h"
#include "neuroshard/Conversion/Emulation/Emulation.h"
#include "neuroshard/Conversion/GPU/GpuImages.h"
#include "neuroshard/Conversion/GPU/GpuPipelines.h"
#include "neuroshard/Conversion/RunPasses.h"

using namespace mlir;

namespace neuroshard {

namespace {
class GpuCompiler {
public:
  GpuCompiler(const CompileOptions &options, ModuleOp module, StringRef name,
              ArtifactDirectory &directory)
      : options(options), partitioned(module),
        module(ModuleOp::create(module.getLoc())), name(name),
        directory(directory), loc(module.getLoc()) {
    this->module->getOperation()->setAttrs(module->getAttrDictionary());
  }

  LogicalResult run();

private:
  LogicalResult writeImages();
  LogicalResult writeEmulated();

  const CompileOptions &options;
  ModuleOp partitioned;
  OwningOpRef<ModuleOp> module; ///< of the GPU.
  StringRef name;
  ArtifactDirectory &directory;
  Location loc;
  GpuProgram program;
};
} // namespace

LogicalResult GpuCompiler::writeImages() {
  if (options.gpu.archs.empty())
    return success();
  FailureOr<std::vector<GpuImage>> images =
      compileGpuImages(*module, options.gpu);
  if (failed(images))
    return failure();
  for (const GpuImage &image : *images) {
    bool isPtx = image.arch == "ptx";
    std::string file =
        (name + "." + (isPtx ? "ptx" : image.arch + ".cubin")).str();
    if (failed(directory.write(file, image.bytes, loc)))
      return failure();
    program.images.push_back({image.arch, file});
  }
  return success();
}

LogicalResult GpuCompiler::writeEmulated() {
  if (!options.emulate)
    return success();
  std::string file = (name + ".emulated.so").str();
  NativeOptions native = options.native;
  native.keepIntermediates = false;
  native.addressSanitizer = false; // the emulator checks accesses itself
  if (failed(compileEmulated(*module, native, directory.path(file))))
    return failure();
  program.emulated = {"", file};
  return success();
}

LogicalResult GpuCompiler::run() {
  FailureOr<GpuProgram> converted =
      convertToGpu(partitioned, name, options.gpuProgram, *module);
  if (failed(converted))
    return failure();
  program = std::move(*converted);
  if (failed(runPasses(*module, options.native.crashReproducer,
                       buildGpuSimplification)))
    return failure();
  program.module = hashOfGpuModule(*module);
  if (options.emitIR) {
    std::string text;
    llvm::raw_string_ostream(text) << *module << "\n";
    if (failed(directory.write(("ir/" + name + "-gpu.mlir").str(), text, loc)))
      return failure();
  }
  if (failed(writeImages()) || failed(writeEmulated()))
    return failure();
  return directory.write((name + ".gpu.json").str(), writeGpuProgram(program),
                         loc);
}

LogicalResult compileForGpu(const CompileOptions &options, ModuleOp module,
                            StringRef name, ArtifactDirectory &directory) {
  return GpuCompiler(options, module, name, directory).run();
}

} // namespace neuroshard
