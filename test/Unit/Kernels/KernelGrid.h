//===- KernelGrid.h - All kernels under test, in one library ---*- C++ -*-===//
//
// One device program has a slot for every combination of columns, element
// type and optimizer; it is compiled once for the whole test program.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_KERNELS_KERNELGRID_H
#define NEUROSHARD_TEST_KERNELS_KERNELGRID_H

#include "neuroshard/Conversion/Kernels/ProgramTable.h"
#include "neuroshard/Runtime/KernelABI.h"

#include <string>

namespace neuroshard {

/// The specification of the program and what the loaded library exports.
struct KernelGrid {
  ProgramSpec spec;
  const nsrt_program *program;
};

/// The number of the step that tests run, with counters: some slots adjust
/// before it, others after it.
inline constexpr float kStep = 9;

/// Compiles and loads on the first call.
const KernelGrid &getKernelGrid();

/// "dim 64 f16 adagrad", for messages.
std::string describe(const SlotSpec &slot);

} // namespace neuroshard

#endif // NEUROSHARD_TEST_KERNELS_KERNELGRID_H
