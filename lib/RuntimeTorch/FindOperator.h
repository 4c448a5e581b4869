//===- FindOperator.h - Operators of torch by name --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_FINDOPERATOR_H
#define NEUROSHARD_LIB_RUNTIMETORCH_FINDOPERATOR_H

#include <ATen/core/dispatch/Dispatcher.h>

namespace neuroshard::runtime {

/// Throws if there is none, or if its kernels have another signature.
template <typename Signature> auto findOperator(const char *name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Signature>();
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_FINDOPERATOR_H
