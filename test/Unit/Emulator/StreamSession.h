//===- StreamSession.h - Streams, events and their work --------*- C++ -*-===//
//
// Short forms of what the tests of streams do, and the functions of graphs.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_EMULATOR_STREAMSESSION_H
#define NEUROSHARD_TEST_EMULATOR_STREAMSESSION_H

#include "DriverSession.h"

namespace neuroshard::emulator {

extern "C" {
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                     unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphExecDestroy(CUgraphExec executable);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream);
}

/// An array with one value.
class One : public DeviceArray<uint32_t> {
public:
  explicit One(uint32_t value)
      : DeviceArray<uint32_t>(std::vector<uint32_t>(1, value)) {}
};

inline CUstream makeStream() {
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  return stream;
}

inline CUevent makeEvent() {
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  return event;
}

/// Sets the one value of `array`.
inline void set(One &array, uint32_t value, CUstream stream) {
  EXPECT_EQ(cuMemsetD32Async(array.pointer, value, 1, stream), CUDA_SUCCESS);
}

inline void copy(One &to, One &from, CUstream stream) {
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(to.pointer, from.pointer, 4, stream),
            CUDA_SUCCESS);
}

} // namespace neuroshard::emulator

#endif // NEUROSHARD_TEST_EMULATOR_STREAMSESSION_H
