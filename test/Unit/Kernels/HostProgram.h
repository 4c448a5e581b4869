//===- HostProgram.h - Host functions compiled and called ------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_KERNELS_HOSTPROGRAM_H
#define NEUROSHARD_TEST_KERNELS_HOSTPROGRAM_H

#include "ContextWithErrors.h"
#include "NativeLibrary.h"

#include "neuroshard/Conversion/Native/Pipeline.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <string>

namespace neuroshard {

/// A memref as host functions take and return it.
template <int Rank> struct Descriptor {
  float *allocated, *aligned;
  int64_t offset, sizes[Rank], strides[Rank];
};

/// A parsed module, and the errors reported for it.
struct Program : ContextWithErrors {
  explicit Program(const std::string &text)
      : ContextWithErrors(registerNativeDialects),
        module(mlir::parseSourceString<mlir::ModuleOp>(text, &context)) {
    EXPECT_TRUE(module) << testing::PrintToString(errors);
  }

  mlir::OwningOpRef<mlir::ModuleOp> module;
};

using Invoke = void (*)(void **);

inline Invoke findInvoke(const NativeLibrary &library, const char *name) {
  void *symbol = library.find((std::string("nsrt_invoke_") + name).c_str());
  EXPECT_NE(symbol, nullptr) << name;
  return reinterpret_cast<Invoke>(symbol);
}

} // namespace neuroshard

#endif // NEUROSHARD_TEST_KERNELS_HOSTPROGRAM_H
