//===- GpuImages.cpp - GPU modules to images that drivers load ------------===//

#include "neuroshard/Conversion/GPU/GpuImages.h"

#include "neuroshard/Conversion/GPU/GpuPipelines.h"
#include "neuroshard/Conversion/RunPasses.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"

using namespace mlir;

namespace neuroshard {

namespace {
struct Architecture {
  llvm::StringLiteral name;
  /// The first version of PTX that has the architecture and allows parameters
  /// of more than 4 KiB.
  llvm::StringLiteral ptxFeature;
};
} // namespace

/// In ascending order.
static constexpr Architecture kArchitectures[] = {
    {"sm_80", "+ptx81"},  {"sm_86", "+ptx81"},  {"sm_87", "+ptx81"},
    {"sm_89", "+ptx81"},  {"sm_90", "+ptx81"},  {"sm_100", "+ptx86"},
    {"sm_103", "+ptx88"}, {"sm_120", "+ptx87"}, {"sm_121", "+ptx88"}};

std::string hashOfGpuModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
    gpuModule.print(stream);
  auto hash = llvm::SHA1::hash(llvm::arrayRefFromStringRef(text));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

static FailureOr<const Architecture *> findArchitecture(ModuleOp module,
                                                        StringRef name) {
  for (const Architecture &arch : kArchitectures)
    if (arch.name == name)
      return &arch;
  InFlightDiagnostic error =
      emitError(module.getLoc(), "expected a GPU architecture of");
  for (const Architecture &arch : kArchitectures)
    error << " " << arch.name;
  return error << ", got: '" << printable(name) << "'";
}

static FailureOr<std::string> findToolkit(ModuleOp module,
                                          const GpuTargetOptions &options) {
  std::string toolkit =
      options.toolkit.empty() ? NEUROSHARD_CUDA_TOOLKIT : options.toolkit;
  SmallString<128> assembler(toolkit);
  llvm::sys::path::append(assembler, "bin", "ptxas");
  if (!llvm::sys::fs::can_execute(assembler))
    return emitError(module.getLoc())
           << "no ptxas at '" << assembler
           << "'; name the folder of a CUDA toolkit with --cuda-toolkit";
  return toolkit;
}

/// The module for one architecture, as "isa" or "bin".
static FailureOr<std::string> serialize(ModuleOp module,
                                        const Architecture &arch,
                                        StringRef toolkit, StringRef format,
                                        StringRef reproducer) {
  OwningOpRef<ModuleOp> copy = module.clone();
  MLIRContext *context = module.getContext();
  auto target = NVVM::NVVMTargetAttr::get(context, /*optLevel=*/3,
                                          /*triple=*/"nvptx64-nvidia-cuda",
                                          arch.name, arch.ptxFeature);
  for (auto gpuModule : copy->getOps<gpu::GPUModuleOp>())
    gpuModule.setTargetsAttr(ArrayAttr::get(context, {target}));
  GpuModuleToBinaryPassOptions binary;
  binary.toolkitPath = toolkit.str();
  binary.compilationTarget = format.str();
  if (failed(runPasses(*copy, reproducer, [&](OpPassManager &pm) {
        buildGpuToNVVM(pm);
        pm.addPass(createGpuModuleToBinaryPass(binary));
      })))
    return failure();
  for (auto op : copy->getOps<gpu::BinaryOp>())
    for (auto object : op.getObjects().getAsRange<gpu::ObjectAttr>())
      return object.getObject().getValue().str();
  return emitError(module.getLoc(), "has no GPU module to compile");
}

FailureOr<std::vector<GpuImage>>
compileGpuImages(ModuleOp module, const GpuTargetOptions &options) {
  FailureOr<std::string> toolkit = findToolkit(module, options);
  if (failed(toolkit))
    return failure();
  SmallVector<const Architecture *> archs;
  for (const std::string &name : options.archs) {
    FailureOr<const Architecture *> arch = findArchitecture(module, name);
    if (failed(arch))
      return failure();
    if (!llvm::is_contained(archs, *arch))
      archs.push_back(*arch);
  }
  if (archs.empty())
    return emitError(module.getLoc(), "expected at least one GPU architecture");
  std::vector<GpuImage> images;
  for (const Architecture *arch : archs) {
    FailureOr<std::string> cubin =
        serialize(module, *arch, *toolkit, "bin", options.crashReproducer);
    if (failed(cubin))
      return failure();
    images.push_back({arch->name.str(), std::move(*cubin)});
  }
  // In the order of the table.
  const Architecture *least = *llvm::min_element(archs);
  FailureOr<std::string> ptx =
      serialize(module, *least, *toolkit, "isa", options.crashReproducer);
  if (failed(ptx))
    return failure();
  // The driver takes text that ends with a zero.
  while (!ptx->empty() && ptx->back() == '\0')
    ptx->pop_back();
  images.push_back({"ptx", std::move(*ptx)});
  return images;
}

} // namespace neuroshard
