//===- TensorPool.cpp - The pool that tensors come from -------------------===//

#include "TensorPool.h"

#include <memory>
#include <utility>

namespace neuroshard::runtime {

static thread_local BufferPool *poolOfThread = nullptr;

BufferPool &processPool() {
  static auto *all =
      new std::shared_ptr<BufferPool>(std::make_shared<BufferPool>());
  return **all;
}

BufferPool &tensorPool() {
  return poolOfThread ? *poolOfThread : processPool();
}

TensorPoolScope::TensorPoolScope(BufferPool *pool)
    : before(std::exchange(poolOfThread, pool)) {}

TensorPoolScope::~TensorPoolScope() { poolOfThread = before; }

} // namespace neuroshard::runtime
