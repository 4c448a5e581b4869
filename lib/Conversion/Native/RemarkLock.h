//===- RemarkLock.h - Remarks of passes on functions ------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_NATIVE_REMARKLOCK_H
#define NEUROSHARD_LIB_CONVERSION_NATIVE_REMARKLOCK_H

#include "mlir/IR/Remarks.h"

#include <mutex>

namespace neuroshard {

/// To be held while a pass emits a remark that may run on several functions at
/// once: MLIR's engine of remarks has no lock.
inline std::unique_lock<std::mutex> remarkLock() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_NATIVE_REMARKLOCK_H
