//===- TestKernel.h - Kernels written in C++ -------------------*- C++ -*-===//
//
// Launches a function as a kernel whose only parameter is a pointer.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_UNIT_EMULATOR_TESTKERNEL_H
#define NEUROSHARD_TEST_UNIT_EMULATOR_TESTKERNEL_H

#include "Launch.h"

namespace neuroshard::emulator {

struct Shape {
  uint32_t grid = 1, block = 32;
  uint64_t seed = 0;
};

/// Runs body(*data) in every thread.
template <auto body, typename Data>
std::optional<KernelError> launchTest(Shape shape, Data &data) {
  void *params[] = {&data};
  Kernel kernel{
      "test",      [](void **params) { body(*static_cast<Data *>(params[0])); },
      params,      shape.grid,
      shape.block, shape.seed};
  return launch(kernel);
}

} // namespace neuroshard::emulator

#endif // NEUROSHARD_TEST_UNIT_EMULATOR_TESTKERNEL_H
