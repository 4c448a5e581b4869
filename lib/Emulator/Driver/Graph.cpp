//===- Graph.cpp - Captured work of the driver ----------------------------===//
//
// A graph runs its work in the order in which it was captured.
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

using namespace neuroshard::emulator;

namespace neuroshard::cuda {
struct CUgraph_st {
  Graph graph;
};
struct CUgraphExec_st {
  Graph graph;
};
} // namespace neuroshard::cuda

namespace {
HandleSet<CUgraph_st> graphs;
HandleSet<CUgraphExec_st> executables;
} // namespace

EMULATOR_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  Queue queue;
  if (CUresult result = checkCall(stream, &queue))
    return result;
  if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return fail(CUDA_ERROR_INVALID_VALUE, "unknown mode of capturing");
  if (queue == legacyQueue(0))
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "the default stream cannot be captured");
  return beginCapture(queue);
}

EMULATOR_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  Queue queue;
  if (CUresult result = checkCall(stream, &queue))
    return result;
  auto made = std::make_unique<CUgraph_st>();
  if (CUresult result = endCapture(queue, made->graph))
    return result;
  graphs.add(made.get());
  *graph = made.release();
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable,
                                                     CUgraph graph,
                                                     unsigned long long) {
  if (!graphs.contains(graph))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not a graph");
  *executable = new CUgraphExec_st{graph->graph};
  executables.add(*executable);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuGraphLaunch(CUgraphExec executable,
                                       CUstream stream) {
  Queue queue;
  if (CUresult result = checkCall(stream, &queue))
    return result;
  if (!executables.contains(executable))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not an executable graph");
  return submit(queue, executable->graph);
}

EMULATOR_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  if (!graphs.remove(graph))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not a graph");
  delete graph;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  if (!executables.remove(executable))
    return fail(CUDA_ERROR_INVALID_HANDLE, "not an executable graph");
  delete executable;
  return CUDA_SUCCESS;
}
