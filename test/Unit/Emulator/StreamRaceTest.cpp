//===- StreamRaceTest.cpp - Work that nothing orders ----------------------===//
//
// Shows which pieces of work the driver takes to be ordered: every test asks
// whether a second access to memory races with a first one. The emulator runs
// the work at once, in the order in which it is given.
//
//===----------------------------------------------------------------------===//

#include "Driver/StreamRaces.h"
#include "StreamSession.h"
#include "TestKernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace neuroshard::emulator;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

namespace {

constexpr const char *kVariable = "NEUROSHARD_EMULATOR_STREAM_RACES";

/// Streams of device 0 and one of device 1. Their work is checked.
class StreamRace : public testing::Test {
protected:
  void SetUp() override {
    setenv(kVariable, "1", 1);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    for (int device : {1, 0}) {
      EXPECT_EQ(cuDevicePrimaryCtxRetain(&contexts[device], device),
                CUDA_SUCCESS);
      EXPECT_EQ(cuCtxPushCurrent_v2(contexts[device]), CUDA_SUCCESS);
      for (CUstream &stream : streams[device])
        stream = makeStream();
      EXPECT_EQ(cuMemAlloc_v2(&arrays[device], kBytes), CUDA_SUCCESS);
    }
  }

  void TearDown() override {
    for (int device : {0, 1}) {
      for (CUstream stream : streams[device])
        cuStreamDestroy_v2(stream);
      EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
      EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(device), CUDA_SUCCESS);
    }
    unsetenv(kVariable);
  }

  /// Writes some bytes of the array of device 0.
  CUresult write(CUstream stream, size_t first = 0, size_t bytes = 4) {
    return cuMemsetD8Async(arrays[0] + first, 1, bytes, stream);
  }
  /// Reads 4 bytes of the array of device 0, and writes others of device 1.
  CUresult read(CUstream stream, size_t first = 0) {
    return cuMemcpyDtoDAsync_v2(arrays[1] + 8 * numReads++, arrays[0] + first,
                                4, stream);
  }
  /// Does what device 1 is to do.
  void onOther(const std::function<void()> &body) {
    EXPECT_EQ(cuCtxPushCurrent_v2(contexts[1]), CUDA_SUCCESS);
    body();
    EXPECT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
  }
  /// Copies 4 bytes to device 1, whose stream waits for `from`.
  void copyToOther(CUstream from) {
    CUevent event = makeEvent();
    EXPECT_EQ(cuEventRecord(event, from), CUDA_SUCCESS);
    onOther([&] {
      EXPECT_EQ(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
      EXPECT_EQ(cuMemcpyPeerAsync(arrays[1], contexts[1], arrays[0],
                                  contexts[0], 4, other),
                CUDA_SUCCESS);
    });
    EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  }
  /// Lets work of `to` wait for that of `from`.
  static void order(CUstream from, CUstream to) {
    CUevent event = makeEvent();
    EXPECT_EQ(cuEventRecord(event, from), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(to, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  }

  static constexpr size_t kBytes = 1 << 12;
  CUcontext contexts[2] = {};
  CUstream streams[2][3] = {};
  CUstream &a = streams[0][0], &b = streams[0][1], &c = streams[0][2];
  CUstream &other = streams[1][0];
  CUdeviceptr arrays[2] = {};
  size_t numReads = 0;
};

TEST_F(StreamRace, AMissingEventIsFound) {
  EXPECT_EQ(write(a, 96), CUDA_SUCCESS);
  EXPECT_EQ(read(b, 96), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(
      nse_last_error(),
      AllOf(ContainsRegex("^copy of 4 bytes on stream [0-9]+ of device 0 reads "
                          "address 0x[0-9a-f]+, byte 96 of 4096 bytes of "
                          "device memory, which fill of 4 bytes on stream "
                          "[0-9]+ of device 0 has written, and nothing orders "
                          "the two$")));
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(StreamRace, NothingIsFoundWithoutTheVariable) {
  unsetenv(kVariable);
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  EXPECT_EQ(read(b), CUDA_SUCCESS);
}

TEST_F(StreamRace, TheDelayOfWorkDoesNotMatter) {
  for (const char *when : {"late", ""}) {
    setenv("NEUROSHARD_EMULATOR_STREAMS", when, 1);
    EXPECT_EQ(write(a), CUDA_SUCCESS);
    order(a, b);
    EXPECT_EQ(read(b), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  setenv("NEUROSHARD_EMULATOR_STREAMS", "late", 1);
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  EXPECT_EQ(read(b), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(nse_last_error(), HasSubstr("nothing orders the two"));
  unsetenv("NEUROSHARD_EMULATOR_STREAMS");
}

TEST_F(StreamRace, AStreamAndAnEventOrder) {
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  EXPECT_EQ(read(a), CUDA_SUCCESS);
  order(a, b);
  EXPECT_EQ(write(b), CUDA_SUCCESS);
}

TEST_F(StreamRace, AnEventOrdersWhatIsBeforeIt) {
  CUevent event = makeEvent();
  EXPECT_EQ(write(a, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  EXPECT_EQ(write(a, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(b, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(read(b, 0), CUDA_SUCCESS);
  EXPECT_EQ(read(b, 4), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
}

TEST_F(StreamRace, OrderPassesThroughAThirdStream) {
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  order(a, c);
  order(c, b);
  EXPECT_EQ(read(b), CUDA_SUCCESS);
}

TEST_F(StreamRace, AWriteWaitsForAllReads) {
  EXPECT_EQ(read(a), CUDA_SUCCESS);
  EXPECT_EQ(read(b), CUDA_SUCCESS);
  EXPECT_EQ(read(a), CUDA_SUCCESS);
  order(a, c);
  EXPECT_EQ(write(c), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(nse_last_error(), HasSubstr("has read, and nothing"));
}

TEST_F(StreamRace, AReadDoesNotHideAWrite) {
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  order(a, b);
  EXPECT_EQ(read(b), CUDA_SUCCESS);
  EXPECT_EQ(read(c), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(StreamRace, OtherBytesDoNotConflict) {
  EXPECT_EQ(write(a, 0, 70), CUDA_SUCCESS);
  EXPECT_EQ(write(b, 70, 70), CUDA_SUCCESS);
  EXPECT_EQ(write(c, 139, 70), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(nse_last_error(), HasSubstr("byte 139 of 4096 bytes"));
}

TEST_F(StreamRace, WaitsOfTheHostOrder) {
  CUevent event = makeEvent();
  const std::function<CUresult()> waits[] = {
      [&] { return cuStreamSynchronize(a); },
      [&] { return cuStreamQuery(a); },
      [&] { return cuEventSynchronize(event); },
      [&] { return cuEventQuery(event); },
      [&] { return cuCtxSynchronize(); },
      [&] {
        One freed(1);
        return cuMemFree_v2(std::exchange(freed.pointer, 0));
      }};
  for (const auto &wait : waits) {
    EXPECT_EQ(write(a), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
    EXPECT_EQ(wait(), CUDA_SUCCESS);
    EXPECT_EQ(write(b), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(b), CUDA_SUCCESS);
  }
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(b), CUDA_SUCCESS); // not of this one
  EXPECT_EQ(write(b), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
}

TEST_F(StreamRace, AQueryThatFailsDoesNotOrder) {
  setenv("NEUROSHARD_EMULATOR_STREAMS", "late", 1);
  EXPECT_EQ(write(a, 0), CUDA_SUCCESS);
  EXPECT_EQ(write(a, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(write(b, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  unsetenv("NEUROSHARD_EMULATOR_STREAMS");
}

/// Runs what uses a device in another thread.
void inThread(CUcontext context, const std::function<void()> &body) {
  std::thread([&] {
    EXPECT_EQ(cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    body();
  }).join();
}

TEST_F(StreamRace, ThreadsOfOneDeviceKnowItsWaits) {
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  inThread(contexts[0],
           [&] { EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS); });
  EXPECT_EQ(read(b), CUDA_SUCCESS);
}

TEST_F(StreamRace, ThreadsOfOtherDevicesDoNot) {
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  inThread(contexts[1],
           [&] { EXPECT_EQ(read(other), CUDA_ERROR_LAUNCH_FAILED); });
}

TEST_F(StreamRace, FreedMemoryIsForgotten) {
  CUdeviceptr freed = 0, pointer = 0;
  ASSERT_EQ(cuMemAlloc_v2(&freed, kBytes), CUDA_SUCCESS);
  onOther([&] {
    EXPECT_EQ(cuMemsetD8Async(freed, 1, kBytes, other), CUDA_SUCCESS);
  });
  EXPECT_EQ(cuMemFree_v2(freed), CUDA_SUCCESS); // waits for device 0 only
  for (int i = 0; i < 64 && pointer != freed; ++i)
    ASSERT_EQ(cuMemAlloc_v2(&pointer, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(pointer, freed);
  EXPECT_EQ(cuMemsetD8Async(pointer, 1, kBytes, a), CUDA_SUCCESS);
}

TEST_F(StreamRace, CopiesBetweenDevices) {
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  copyToOther(a);
  EXPECT_EQ(write(a), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(nse_last_error(), AllOf(HasSubstr("of device 0 writes address"),
                                      HasSubstr("of device 1 has read")));
}

TEST_F(StreamRace, AWaitByAnotherDeviceOrdersOverwritesOnly) {
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  copyToOther(a);
  CUevent copied = nullptr;
  onOther([&] {
    EXPECT_EQ(cuEventCreate(&copied, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(copied, other), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(a, copied, 0), CUDA_SUCCESS);
  });
  EXPECT_EQ(write(a), CUDA_SUCCESS);
  auto readCopy = [&](CUstream stream, size_t to) {
    return cuMemcpyDtoDAsync_v2(arrays[0] + to, arrays[1], 4, stream);
  };
  EXPECT_EQ(cuStreamWaitEvent(b, copied, 0), CUDA_SUCCESS);
  EXPECT_EQ(readCopy(b, 64), CUDA_SUCCESS);
  EXPECT_EQ(readCopy(a, 128), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuEventDestroy_v2(copied), CUDA_SUCCESS);
}

TEST_F(StreamRace, AWaitByAnotherDeviceOrdersNothingThroughOthers) {
  EXPECT_EQ(read(a), CUDA_SUCCESS);
  order(a, other); // asked for by device 0
  onOther([&] {
    EXPECT_EQ(cuMemcpyPeerAsync(arrays[1] + 64, contexts[1], arrays[0],
                                contexts[0], 4, other),
              CUDA_SUCCESS);
    order(other, b);
  });
  EXPECT_EQ(write(b), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(StreamRace, PinnedMemory) {
  void *pinned = nullptr;
  ASSERT_EQ(cuMemAllocHost_v2(&pinned, 8), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(pinned, arrays[0], 4, a), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(arrays[1], pinned, 4, b),
            CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(nse_last_error(), HasSubstr("byte 0 of 8 bytes of pinned host"));
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST_F(StreamRace, TheSort) {
  size_t bytes = 0;
  auto at = [&](size_t number) {
    return reinterpret_cast<int32_t *>(arrays[0] + 256 * number);
  };
  auto sort = [&](CUstream stream) {
    return nsg_sort(at(0), &bytes, at(8), 4, 32, at(9), at(10), at(11), at(12),
                    at(13), at(14), 3, stream);
  };
  ASSERT_EQ(nsg_sort(nullptr, &bytes, nullptr, 4, 32, nullptr, nullptr, nullptr,
                     nullptr, nullptr, nullptr, 3, nullptr),
            CUDA_SUCCESS);
  const int32_t iota[] = {0, 1, 2};
  ASSERT_EQ(cuMemcpyHtoD_v2(arrays[0] + 256 * 9, iota, 12), CUDA_SUCCESS);
  EXPECT_EQ(sort(a), CUDA_SUCCESS);
  EXPECT_EQ(read(b, 256 * 9), CUDA_SUCCESS);
  EXPECT_EQ(read(b, 256 * 14), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(nse_last_error(), HasSubstr("which nsg_sort on stream"));
}

/// A graph of what `body` gives to the streams.
CUgraphExec capture(CUstream stream, const std::function<void()> &body) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
  body();
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  return executable;
}

TEST_F(StreamRace, AGraphIsOrderedByTheStreamThatLaunchesIt) {
  CUgraphExec graph = capture(a, [&] {
    order(a, b);
    EXPECT_EQ(write(b), CUDA_SUCCESS);
    order(b, a);
    EXPECT_EQ(read(a), CUDA_SUCCESS);
  });
  for (CUstream stream : {a, b}) { // launches of one graph are in order
    EXPECT_EQ(cuGraphLaunch(graph, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(graph, stream), CUDA_SUCCESS);
  }
  EXPECT_EQ(read(b), CUDA_SUCCESS);
  EXPECT_EQ(read(c), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuGraphExecDestroy(graph), CUDA_SUCCESS);
}

TEST_F(StreamRace, AGraphComesAfterWhatItsStreamHas) {
  CUgraphExec graph = capture(a, [&] {
    order(a, b);
    EXPECT_EQ(write(b), CUDA_SUCCESS);
    order(b, a);
  });
  EXPECT_EQ(write(c), CUDA_SUCCESS);
  order(c, a);
  EXPECT_EQ(cuGraphLaunch(graph, a), CUDA_SUCCESS);
  EXPECT_EQ(write(b), CUDA_ERROR_LAUNCH_FAILED); // b has captured it only
  EXPECT_THAT(nse_last_error(), HasSubstr(", in a graph has written"));
  EXPECT_EQ(cuGraphExecDestroy(graph), CUDA_SUCCESS);
}

TEST_F(StreamRace, InsideOfAGraph) {
  CUgraphExec graph = capture(a, [&] {
    order(a, b);
    EXPECT_EQ(write(b), CUDA_SUCCESS);
    EXPECT_EQ(read(a), CUDA_SUCCESS);
    order(b, a);
  });
  EXPECT_EQ(cuGraphLaunch(graph, a), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuGraphExecDestroy(graph), CUDA_SUCCESS);
}

struct SomeAccesses {
  std::byte *array;
};

void accessSome(SomeAccesses &data) {
  int64_t i = nse_thread_id();
  nse_access(data.array + 2 * i, 2, NSE_READ);
  if (i == 3)
    nse_access(data.array + 60, 8, NSE_WRITE);
  nse_access(data.array + 128, 4, NSE_ATOMIC);
  nse_access(data.array + 192, 1, NSE_READ_INVARIANT);
}

TEST(Accesses, OfAKernelByLine) {
  alignas(64) std::byte array[256];
  SomeAccesses data{array};
  Accesses accesses;
  EXPECT_FALSE(
      launchTest<accessSome>({.block = 4, .accesses = &accesses}, data));
  auto first = reinterpret_cast<uintptr_t>(array) / 64;
  ASSERT_EQ(accesses.getLines().size(), 4u);
  auto expectLine = [&](uintptr_t line, LineAccess expected) {
    const LineAccess &found = accesses.getLines().at(first + line);
    EXPECT_EQ(found.reads, expected.reads) << line;
    EXPECT_EQ(found.writes, expected.writes) << line;
    EXPECT_EQ(found.atomics, expected.atomics) << line;
  };
  expectLine(0, {0xff, uint64_t{0xf} << 60, 0});
  expectLine(1, {0, 0xf, 0});
  expectLine(2, {0, 0, 0xf});
  expectLine(3, {1, 0, 0});
}

TEST(Accesses, ConflictUnlessBothReadOrAreAtomic) {
  LineAccess read{1, 0, 0}, write{0, 1, 0}, atomic{0, 0, 1};
  EXPECT_EQ(read.conflicts(read), 0u);
  EXPECT_EQ(atomic.conflicts(atomic), 0u);
  for (const LineAccess &one : {read, write, atomic}) {
    EXPECT_EQ(write.conflicts(one), 1u);
    EXPECT_EQ(one.conflicts(write), 1u);
  }
  EXPECT_EQ(read.conflicts(atomic), 1u);
  EXPECT_EQ(atomic.conflicts(read), 1u);
  EXPECT_EQ(write.conflicts({2, 2, 2}), 0u);
}

} // namespace
