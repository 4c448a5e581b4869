//===- StreamTest.cpp - Late work and captures of the emulated driver -----===//
//
// Shows that work which is put off is done in the order that streams and events
// give, and in no other; and what a capture allows.
//
//===----------------------------------------------------------------------===//

#include "StreamSession.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroshard::emulator;
using testing::HasSubstr;

namespace {

/// A session with work that is put off.
class LateSession {
public:
  LateSession() { setenv("NEUROSHARD_EMULATOR_STREAMS", "late", 1); }
  ~LateSession() { unsetenv("NEUROSHARD_EMULATOR_STREAMS"); }
  DriverSession session;
};

TEST(LateStreams, WorkIsDoneWhenTheHostWaits) {
  LateSession session;
  One array(5);
  CUstream stream = makeStream();
  set(array, 6, stream);
  set(array, 7, stream);
  EXPECT_EQ(array[0], 5u);
  uint64_t before = nse_waits();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(array[0], 7u);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(nse_waits() - before, 1u); // the second had nothing to wait for
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

/// How many of 64 tries saw the value that `a` sets before `b` copies it.
int countOrdered(bool hasEvent) {
  int ordered = 0;
  for (int i = 0; i < 64; ++i) {
    One source(1), target(0);
    CUstream a = makeStream(), b = makeStream();
    CUevent event = makeEvent();
    set(source, 2, a);
    EXPECT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
    if (hasEvent)
      EXPECT_EQ(cuStreamWaitEvent(b, event, 0), CUDA_SUCCESS);
    copy(target, source, b);
    EXPECT_EQ(cuStreamSynchronize(b), CUDA_SUCCESS);
    ordered += target[0] == 2;
    EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(a), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(b), CUDA_SUCCESS);
  }
  return ordered;
}

TEST(LateStreams, OnlyEventsOrderStreams) {
  LateSession session;
  EXPECT_EQ(countOrdered(true), 64);
  int byChance = countOrdered(false);
  EXPECT_GT(byChance, 0);
  EXPECT_LT(byChance, 64);
}

TEST(LateStreams, AnOverwriteThatDoesNotWaitIsSeen) {
  LateSession session;
  int spoiled = 0;
  for (int i = 0; i < 64; ++i) {
    One source(1), target(0);
    CUstream reader = makeStream(), writer = makeStream();
    copy(target, source, reader);
    set(source, 9, writer);
    EXPECT_EQ(cuStreamSynchronize(writer), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(reader), CUDA_SUCCESS);
    spoiled += target[0] == 9;
    EXPECT_EQ(cuStreamDestroy_v2(reader), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(writer), CUDA_SUCCESS);
  }
  EXPECT_GT(spoiled, 0);
}

TEST(LateStreams, FreeingAndSynchronousCopiesWait) {
  LateSession session;
  One array(5);
  uint32_t value = 0;
  set(array, 6, nullptr);
  EXPECT_EQ(cuMemcpyDtoH_v2(&value, array.pointer, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 6u);
  CUstream stream = makeStream();
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAlloc_v2(&other, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32Async(other, 1, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(other), CUDA_SUCCESS); // else the work would fault
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST(LateStreams, PinnedMemoryIsReadLate) {
  LateSession session;
  One array(0);
  CUstream stream = makeStream();
  void *memory = nullptr;
  ASSERT_EQ(cuMemAllocHost_v2(&memory, 4), CUDA_SUCCESS);
  auto *pinned = static_cast<uint32_t *>(memory);
  *pinned = 1;
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(array.pointer, pinned, 4, stream),
            CUDA_SUCCESS);
  *pinned = 2; // too early
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(array[0], 2u);
  EXPECT_EQ(cuMemFreeHost(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST(Capture, AGraphRunsWhatWasCaptured) {
  DriverSession session;
  One source(1), target(0);
  CUstream stream = makeStream(), side = makeStream();
  CUevent fork = makeEvent(), join = makeEvent();
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
  int status = 0;
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuEventRecord(fork, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
  copy(target, source, side);
  EXPECT_EQ(cuEventRecord(join, side), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(stream, join, 0), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(target[0], 0u);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  for (uint32_t value : {3u, 4u}) {
    set(source, value, stream);
    EXPECT_EQ(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(target[0], value);
  }
  EXPECT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  for (CUevent event : {fork, join})
    EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  for (CUstream one : {stream, side})
    EXPECT_EQ(cuStreamDestroy_v2(one), CUDA_SUCCESS);
}

TEST(Capture, ForbidsWaitsAndAllocations) {
  DriverSession session;
  One array(0);
  CUstream stream = makeStream();
  CUevent before = makeEvent();
  EXPECT_EQ(cuEventRecord(before, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamWaitEvent(stream, before, 0),
            CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, 0);
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(pointer), CUDA_SUCCESS);
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(before), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST(Capture, NeedsAllWorkToBeJoined) {
  DriverSession session;
  One array(0);
  CUstream stream = makeStream(), side = makeStream();
  CUevent fork = makeEvent();
  ASSERT_EQ(cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(fork, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
  set(array, 1, side);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph),
            CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_THAT(nse_last_error(), HasSubstr("does not wait for"));
  EXPECT_EQ(cuEventDestroy_v2(fork), CUDA_SUCCESS);
  for (CUstream one : {stream, side})
    EXPECT_EQ(cuStreamDestroy_v2(one), CUDA_SUCCESS);
}

} // namespace
