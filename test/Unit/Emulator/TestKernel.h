//===- TestKernel.h - Kernels written in C++ -------------------*- C++ -*-===//
//
// Launches a function as a kernel whose only parameter is a pointer.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_EMULATOR_TESTKERNEL_H
#define NEUROSHARD_TEST_EMULATOR_TESTKERNEL_H

#include "Launch.h"

namespace neuroshard::emulator {

struct Shape {
  uint32_t grid = 1, block = 32;
  uint64_t seed = 0;
  bool findRaces = false;
  uint64_t maximumSteps = Kernel().maximumSteps;
  Accesses *accesses = nullptr;
};

/// Runs body(*data) in every thread.
template <auto body, typename Data>
std::optional<KernelError> launchTest(Shape shape, Data &data) {
  void *params[] = {&data};
  Kernel kernel;
  kernel.name = "test";
  kernel.function = [](void **params) {
    body(*static_cast<Data *>(params[0]));
  };
  kernel.params = params;
  kernel.gridSize = shape.grid;
  kernel.blockSize = shape.block;
  kernel.seed = shape.seed;
  kernel.maximumSteps = shape.maximumSteps;
  kernel.accesses = shape.accesses;
  RaceFinder races;
  if (shape.findRaces)
    kernel.races = &races;
  return launch(kernel);
}

} // namespace neuroshard::emulator

#endif // NEUROSHARD_TEST_EMULATOR_TESTKERNEL_H
