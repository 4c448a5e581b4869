//===- ObjectCode.cpp - From the LLVM dialect to object code --------------===//
//
// LLVM's standard optimisation pipeline and code generator for one CPU.
//
//===----------------------------------------------------------------------===//

#include "ObjectCode.h"
#include "RoundToBf16.h"

#include "neuroshard/Conversion/Native/NativeTarget.h"
#include "neuroshard/Conversion/Native/WriteOutput.h"
#include "neuroshard/Emulator/EmulatorABI.h"
#include "neuroshard/Runtime/KernelABI.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm-c/Error.h"
#include "llvm-c/Transforms/PassBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace mlir;

namespace neuroshard {

/// The target machine of the options; null after an error at `module`.
static std::unique_ptr<llvm::TargetMachine>
makeTargetMachine(ModuleOp module, const NativeOptions &options) {
  FailureOr<NativeTarget> native = findNativeTarget(module.getLoc(), options);
  if (failed(native))
    return nullptr;
  llvm::TargetOptions machineOptions;
  machineOptions.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      native->target->createTargetMachine(
          native->triple, native->cpu, native->features, machineOptions,
          llvm::Reloc::PIC_, std::nullopt,
          static_cast<llvm::CodeGenOptLevel>(options.optLevel)));
}

static bool isExported(const llvm::GlobalValue &value) {
  return value.getName() == NSRT_PROGRAM_SYMBOL ||
         value.getName().starts_with(NSRT_INVOKE_PREFIX) ||
         value.getName().starts_with(NSE_PARAMETERS_PREFIX);
}

/// What LLVM's passes do, as text. The sanitizer comes last, so that it finds
/// the accesses that are left, and hinders no optimisation.
static std::string pipelineOf(const NativeOptions &options) {
  std::string text = "default<O" + std::to_string(options.optLevel) + ">";
  return options.addressSanitizer ? text + ",asan" : text;
}

/// The C interface of LLVM's passes compiles in a third of the time.
static LogicalResult optimize(ModuleOp module, llvm::Module &code,
                              llvm::TargetMachine &machine,
                              const NativeOptions &options) {
  code.setTargetTriple(machine.getTargetTriple());
  code.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : code) {
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    if (options.addressSanitizer && !function.isDeclaration())
      function.addFnAttr(llvm::Attribute::SanitizeAddress);
  }
  llvm::internalizeModule(code, isExported);

  LLVMPassBuilderOptionsRef tuning = LLVMCreatePassBuilderOptions();
  LLVMPassBuilderOptionsSetLoopVectorization(tuning, options.optLevel > 1);
  LLVMPassBuilderOptionsSetSLPVectorization(tuning, options.optLevel > 1);
  LLVMErrorRef error =
      LLVMRunPasses(llvm::wrap(&code), pipelineOf(options).c_str(),
                    reinterpret_cast<LLVMTargetMachineRef>(&machine), tuning);
  LLVMDisposePassBuilderOptions(tuning);
  if (!error)
    return success();
  char *message = LLVMGetErrorMessage(error);
  InFlightDiagnostic diagnostic = emitError(module.getLoc())
                                  << "optimisation failed: " << message;
  LLVMDisposeErrorMessage(message);
  return diagnostic;
}

static LogicalResult writeIR(ModuleOp module, const llvm::Module &code,
                             StringRef path) {
  return writeOutput(module.getLoc(), path, llvm::sys::fs::OF_Text,
                     [&](llvm::raw_pwrite_stream &file) {
                       code.print(file, nullptr);
                       return success();
                     });
}

static LogicalResult writeObject(ModuleOp module, llvm::Module &code,
                                 llvm::TargetMachine &machine, StringRef path) {
  auto write = [&](llvm::raw_pwrite_stream &file) -> LogicalResult {
    llvm::legacy::PassManager passes;
    if (machine.addPassesToEmitFile(passes, file, nullptr,
                                    llvm::CodeGenFileType::ObjectFile))
      return emitError(module.getLoc())
             << "the target cannot write object files";
    passes.run(code);
    return success();
  };
  return writeOutput(module.getLoc(), path, llvm::sys::fs::OF_None, write);
}

LogicalResult writeObjectFile(ModuleOp module, const NativeOptions &options,
                              StringRef objectPath, StringRef irPath) {
  std::unique_ptr<llvm::TargetMachine> machine =
      makeTargetMachine(module, options);
  if (!machine)
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code || llvm::verifyModule(*code))
    return emitError(module.getLoc()) << "translation to LLVM IR failed";
  if (failed(optimize(module, *code, *machine, options)))
    return failure();
  if (!irPath.empty() && failed(writeIR(module, *code, irPath)))
    return failure();
  defineRoundToBf16(*code);
  return writeObject(module, *code, *machine, objectPath);
}

} // namespace neuroshard
