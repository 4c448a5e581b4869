//===- NativeTarget.h - The CPU that code is generated for -----*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_NATIVE_NATIVETARGET_H
#define NEUROSHARD_CONVERSION_NATIVE_NATIVETARGET_H

#include "neuroshard/Conversion/Native/NativeOptions.h"

#include "mlir/IR/Location.h"
#include "llvm/TargetParser/Triple.h"

#include <string>
#include <vector>

namespace llvm {
class Target;
} // namespace llvm

namespace neuroshard {

struct NativeTarget {
  llvm::Triple triple;
  const llvm::Target *target = nullptr;
  std::string cpu;      ///< LLVM's name, also of the host's.
  std::string features; ///< beside those of the CPU, as LLVM writes them.
  /// Instruction sets of the CPU and the features, as a manifest has them.
  std::vector<std::string> instructionSets;
};

/// The target of the options. A CPU that is unknown, or that this machine's
/// code does not run on, is an error at `loc`.
mlir::FailureOr<NativeTarget> findNativeTarget(mlir::Location loc,
                                               const NativeOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_NATIVE_NATIVETARGET_H
