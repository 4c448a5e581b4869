//===- ProgramCheck.h - Validation of a program for a device ----*- C++ -*-===//
//
// Checks that a program library belongs to the manifest it is opened with.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_PROGRAMCHECK_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_PROGRAMCHECK_H

#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/KernelABI.h"

namespace neuroshard::runtime {

/// Throws a RuntimeError if a program does not fit the device's binding: its
/// version, its counts, or the dims, types, states and kernels of its slots.
void checkProgram(const Manifest &manifest, int32_t device,
                  const nsrt_program &program);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_PROGRAMCHECK_H
