//===- NativeTarget.cpp - The CPU that code is generated for --------------===//

#include "neuroshard/Conversion/Native/NativeTarget.h"

#include "neuroshard/Artifact/CpuFeatures.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

#include <memory>
#include <mutex>

using namespace mlir;

namespace neuroshard {

static void initializeTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

static std::string getHostFeatures() {
  llvm::SubtargetFeatures features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.AddFeature(feature.first(), feature.second);
  return features.getString();
}

/// Instructions that round to bf16 but take denormals for zero, whatever the
/// mode of the CPU: results would differ from machine to machine.
constexpr llvm::StringLiteral kInexactSets[] = {"avx512bf16", "avxneconvert"};

static void dropInexactSets(NativeTarget &native) {
  if (!native.triple.isX86())
    return;
  llvm::SubtargetFeatures features(native.features);
  for (llvm::StringRef set : kInexactSets)
    features.AddFeature(set, /*Enable=*/false);
  native.features = features.getString();
}

/// Whether the CPU runs 64-bit code, if that is what the triple means. LLVM
/// ends the process for one that does not.
static bool hasModeOfTriple(const NativeTarget &native,
                            const llvm::MCSubtargetInfo &info) {
  return native.triple.getArch() != llvm::Triple::x86_64 ||
         info.checkFeatures("+64bit");
}

static std::vector<std::string>
findInstructionSets(const llvm::MCSubtargetInfo &info) {
  std::vector<std::string> names;
  for (const llvm::SubtargetFeatureKV &feature :
       info.getEnabledProcessorFeatures())
    if (isCpuFeature(feature.Key))
      names.emplace_back(feature.Key);
  return names;
}

FailureOr<NativeTarget> findNativeTarget(Location loc,
                                         const NativeOptions &options) {
  initializeTarget();
  NativeTarget native;
  native.triple = llvm::Triple(llvm::sys::getProcessTriple());
  std::string problem;
  native.target = llvm::TargetRegistry::lookupTarget(native.triple, problem);
  if (!native.target)
    return emitError(loc) << "no code generator for this machine: " << problem;
  bool isHost = options.targetCpu == "host";
  native.cpu = isHost ? llvm::sys::getHostCPUName().str() : options.targetCpu;
  native.features = isHost ? getHostFeatures() : "";
  dropInexactSets(native);
  std::unique_ptr<llvm::MCSubtargetInfo> known(
      native.target->createMCSubtargetInfo(native.triple, "", ""));
  if (!known || !known->isCPUStringValid(native.cpu))
    return emitError(loc) << "unknown target cpu '" << printable(native.cpu)
                          << "' for " << native.triple.str()
                          << ": give a name that `llc -mcpu=help` lists, or "
                             "host";
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      native.target->createMCSubtargetInfo(native.triple, native.cpu,
                                           native.features));
  if (!hasModeOfTriple(native, *info))
    return emitError(loc) << "target cpu '" << printable(native.cpu)
                          << "' cannot run code for " << native.triple.str()
                          << ": it has no 64-bit mode; give one that has, such "
                             "as x86-64, or host";
  native.instructionSets = findInstructionSets(*info);
  return native;
}

} // namespace neuroshard
