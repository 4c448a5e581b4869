//===- FakeGraph.h - Captured work of a stream ------------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_RUNTIMECUDA_FAKEGRAPH_H
#define NEUROSHARD_TEST_RUNTIMECUDA_FAKEGRAPH_H

#include <functional>
#include <vector>

namespace fake {

/// Work in the order in which it was given to a captured stream.
struct Graph {
  std::vector<std::function<void()>> work;
};

} // namespace fake

#endif // NEUROSHARD_TEST_RUNTIMECUDA_FAKEGRAPH_H
