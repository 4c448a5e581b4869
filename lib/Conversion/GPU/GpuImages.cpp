//===- GpuImages.cpp - GPU modules to images that drivers load ------------===//

#include "neuroshard/Conversion/GPU/GpuImages.h"

#include "neuroshard/Conversion/GPU/Passes.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"

using namespace mlir;

namespace neuroshard {

/// PTX 8.1 allows for kernel parameters of more than 4 KiB and is the first
/// that LLVM takes for sm_90 without asking.
static constexpr char kPtxFeature[] = "+ptx81";

void buildGpuSimplification(OpPassManager &pm) {
  OpPassManager &gpuPm = pm.nest<gpu::GPUModuleOp>();
  gpuPm.addPass(createInlinerPass());
  gpuPm.addPass(createSymbolDCEPass());
  gpuPm.addPass(createCanonicalizerPass());
  gpuPm.addPass(createCSEPass());
  gpuPm.addPass(createLoopInvariantCodeMotionPass());
}

void buildGpuToNVVM(OpPassManager &pm) {
  OpPassManager &gpuPm = pm.nest<gpu::GPUModuleOp>();
  gpuPm.addPass(createExactMath());
  gpuPm.addPass(createSCFToControlFlowPass());
  gpuPm.addPass(createConvertGpuOpsToNVVMOps());
  gpuPm.addPass(createReconcileUnrealizedCastsPass());
  gpuPm.addPass(createCanonicalizerPass());
  gpuPm.addPass(createCSEPass());
}

void registerGpuPipelines() {
  PassPipelineRegistration<>(
      "neuroshard-gpu-simplify",
      "Inline the bodies of GPU modules into their kernels and simplify them",
      buildGpuSimplification);
  PassPipelineRegistration<>("neuroshard-gpu-to-nvvm",
                             "Lower simplified GPU modules to the NVVM dialect",
                             buildGpuToNVVM);
}

std::string hashOfGpuModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
    gpuModule.print(stream);
  auto hash = llvm::SHA1::hash(llvm::arrayRefFromStringRef(text));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

/// The number in "sm_90".
static FailureOr<int> getArchNumber(ModuleOp module, StringRef arch) {
  StringRef digits = arch;
  int number = 0;
  constexpr int kLeast = 80;
  if (!digits.consume_front("sm_") || digits.getAsInteger(10, number) ||
      number < kLeast)
    return module.emitError()
           << "expected a GPU architecture from sm_" << kLeast
           << " on, such as sm_90, got: '" << arch << "'";
  return number;
}

static FailureOr<std::string> findToolkit(ModuleOp module,
                                          const GpuTargetOptions &options) {
  std::string toolkit =
      options.toolkit.empty() ? NEUROSHARD_CUDA_TOOLKIT : options.toolkit;
  SmallString<128> assembler(toolkit);
  llvm::sys::path::append(assembler, "bin", "ptxas");
  if (!llvm::sys::fs::can_execute(assembler))
    return module.emitError()
           << "no ptxas at '" << assembler
           << "'; name the folder of a CUDA toolkit with --cuda-toolkit";
  return toolkit;
}

/// The module for one architecture, as "isa" or "bin".
static FailureOr<std::string> serialize(ModuleOp module, StringRef arch,
                                        StringRef toolkit, StringRef format) {
  OwningOpRef<ModuleOp> copy = module.clone();
  MLIRContext *context = module.getContext();
  auto target = NVVM::NVVMTargetAttr::get(context, /*optLevel=*/3,
                                          /*triple=*/"nvptx64-nvidia-cuda",
                                          arch, kPtxFeature);
  for (auto gpuModule : copy->getOps<gpu::GPUModuleOp>())
    gpuModule.setTargetsAttr(ArrayAttr::get(context, {target}));
  PassManager pm(context);
  buildGpuToNVVM(pm);
  GpuModuleToBinaryPassOptions binary;
  binary.toolkitPath = toolkit.str();
  binary.compilationTarget = format.str();
  pm.addPass(createGpuModuleToBinaryPass(binary));
  if (failed(pm.run(*copy)))
    return failure();
  for (auto op : copy->getOps<gpu::BinaryOp>())
    for (auto object : op.getObjects().getAsRange<gpu::ObjectAttr>())
      return object.getObject().getValue().str();
  return module.emitError("has no GPU module to compile");
}

FailureOr<std::vector<GpuImage>>
compileGpuImages(ModuleOp module, const GpuTargetOptions &options) {
  FailureOr<std::string> toolkit = findToolkit(module, options);
  if (failed(toolkit))
    return failure();
  std::vector<GpuImage> images;
  std::string least;
  int leastNumber = 0;
  for (const std::string &arch : options.archs) {
    FailureOr<int> number = getArchNumber(module, arch);
    if (failed(number))
      return failure();
    if (least.empty() || *number < leastNumber) {
      least = arch;
      leastNumber = *number;
    }
    FailureOr<std::string> cubin = serialize(module, arch, *toolkit, "bin");
    if (failed(cubin))
      return failure();
    images.push_back({arch, std::move(*cubin)});
  }
  if (images.empty())
    return module.emitError("expected at least one GPU architecture");
  FailureOr<std::string> ptx = serialize(module, least, *toolkit, "isa");
  if (failed(ptx))
    return failure();
  // The driver takes text that ends with a zero.
  while (!ptx->empty() && ptx->back() == '\0')
    ptx->pop_back();
  images.push_back({"ptx", std::move(*ptx)});
  return images;
}

} // namespace neuroshard
