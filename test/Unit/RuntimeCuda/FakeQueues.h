//===- FakeQueues.h - Streams and events that run late ---------*- C++ -*-===//
//
// The queues of the fake driver.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIMECUDA_FAKEQUEUES_H
#define NEUROSHARD_TEST_RUNTIMECUDA_FAKEQUEUES_H

#include "FakeGraph.h"
#include "neuroshard/RuntimeCuda/CudaDriver.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace fake {

using neuroshard::cuda::CUresult;
using neuroshard::cuda::CUstream;

inline constexpr CUresult kCaptureUnsupported = 900;
inline constexpr CUresult kCaptureIsolation = 905;

struct Work {
  std::function<void()> run;
  uint64_t waitsFor = 0; ///< ticket of an event.
};

struct Capture;

struct Stream {
  std::deque<Work> queue;
  Capture *capture = nullptr;
  uint64_t capturedWork = 0;
};

struct Event {
  uint64_t ticket = 0;
  Capture *capture = nullptr; ///< recorded in this one.
  Stream *stream = nullptr;
  uint64_t capturedWork = 0;
};

struct Capture {
  Stream *origin = nullptr;
  Graph graph;
  std::map<Stream *, uint64_t> unjoined; ///< work that origin has not joined.
};

class Queues {
public:
  /// `preferred` is read whenever work is chosen; null: none.
  Queues(std::mt19937 &random, const CUstream &preferred)
      : random(random), preferred(preferred) {}

  Stream *stream(CUstream handle);
  CUstream make();
  void destroy(CUstream handle);
  bool idle() const;
  bool anyCapture() const { return !captures.empty(); }

  void push(Stream *stream, std::function<void()> work);
  void record(Event *event, Stream *stream);
  CUresult wait(Stream *stream, const Event *event);

  bool isDone(uint64_t ticket) const {
    return ticket == 0 || doneTickets.count(ticket) > 0;
  }
  /// Run until all of it is done.
  void finish(Stream *stream);
  void finish(uint64_t ticket);
  void finishAll();

  void beginCapture(Stream *stream);
  Graph endCapture(Stream *stream);

private:
  /// Runs one piece of work that can run; false if there is none.
  bool runOne();

  std::mt19937 &random;
  const CUstream &preferred;
  Stream legacy;
  std::set<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Capture>> captures;
  std::vector<std::unique_ptr<Capture>> ended;
  std::set<uint64_t> doneTickets;
  uint64_t tickets = 0;
};

} // namespace fake

#endif // NEUROSHARD_TEST_RUNTIMECUDA_FAKEQUEUES_H
