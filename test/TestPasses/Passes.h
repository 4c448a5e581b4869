//===- Passes.h - Passes that only tests run -------------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_TESTPASSES_PASSES_H
#define NEUROSHARD_TEST_TESTPASSES_PASSES_H

#include "neuroshard/Conversion/Kernels/KernelSpec.h"

#include "mlir/Pass/Pass.h"

namespace neuroshard {

#define GEN_PASS_DECL
#include "Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"

} // namespace neuroshard

#endif // NEUROSHARD_TEST_TESTPASSES_PASSES_H
