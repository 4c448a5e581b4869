//===- TensorPool.h - The pool that tensors come from -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_HOST_TENSORPOOL_H
#define NEUROSHARD_LIB_RUNTIME_HOST_TENSORPOOL_H

#include "BufferPool.h"

namespace neuroshard::runtime {

/// In memory of the host. Never destroyed: tensors may be freed after static
/// objects are.
BufferPool &processPool();

/// Of the tensors that host functions make in this thread: the process's, or
/// that of a TensorPoolScope. A tensor may outlive the device that made it.
BufferPool &tensorPool();

/// While it lives, tensors of this thread come from `pool`, unless it is null.
class TensorPoolScope {
public:
  explicit TensorPoolScope(BufferPool *pool);
  ~TensorPoolScope();
  TensorPoolScope(const TensorPoolScope &) = delete;
  TensorPoolScope &operator=(const TensorPoolScope &) = delete;

private:
  BufferPool *before;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_HOST_TENSORPOOL_H
