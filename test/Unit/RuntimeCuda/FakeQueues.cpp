//===- FakeQueues.cpp - Streams and events that run late ------------------===//
//
// A stream is a queue; an event is done when its stream reaches it. Graphs run
// work in the order of its capture, which CUDA may choose as well.
//
//===----------------------------------------------------------------------===//

#include "FakeQueues.h"

#include <algorithm>
#include <stdexcept>

namespace fake {

Stream *Queues::stream(CUstream handle) {
  return handle ? reinterpret_cast<Stream *>(handle) : &legacy;
}

CUstream Queues::make() {
  auto stream = std::make_unique<Stream>();
  CUstream handle = reinterpret_cast<CUstream>(stream.get());
  streams.insert(std::move(stream));
  return handle;
}

void Queues::destroy(CUstream handle) {
  finish(stream(handle));
  for (auto it = streams.begin(); it != streams.end(); ++it)
    if (it->get() == stream(handle)) {
      streams.erase(it);
      return;
    }
}

bool Queues::idle() const {
  return legacy.queue.empty() &&
         std::all_of(streams.begin(), streams.end(),
                     [](const auto &stream) { return stream->queue.empty(); });
}

void Queues::push(Stream *stream, std::function<void()> work) {
  if (!stream->capture) {
    stream->queue.push_back({std::move(work)});
    return;
  }
  stream->capture->graph.work.push_back(std::move(work));
  ++stream->capturedWork;
  if (stream != stream->capture->origin)
    stream->capture->unjoined[stream] = stream->capturedWork;
}

void Queues::record(Event *event, Stream *stream) {
  event->stream = stream;
  event->capture = stream->capture;
  event->capturedWork = stream->capturedWork;
  event->ticket = stream->capture ? 0 : ++tickets;
  if (!stream->capture)
    stream->queue.push_back(
        {[this, ticket = event->ticket] { doneTickets.insert(ticket); }});
}

CUresult Queues::wait(Stream *stream, const Event *event) {
  if (stream->capture && event->capture != stream->capture)
    return kCaptureIsolation; // an event of the world outside
  if (!stream->capture && event->capture) {
    bool active =
        std::any_of(captures.begin(), captures.end(), [&](const auto &capture) {
          return capture.get() == event->capture;
        });
    if (!active)
      return kCaptureIsolation;       // its graph has ended
    stream->capture = event->capture; // the stream joins the capture
    if (stream != event->capture->origin)
      event->capture->unjoined.emplace(stream, stream->capturedWork);
    return 0;
  }
  if (stream->capture) {
    auto open = stream->capture->unjoined.find(event->stream);
    if (open != stream->capture->unjoined.end() &&
        stream == stream->capture->origin &&
        open->second <= event->capturedWork)
      stream->capture->unjoined.erase(open);
    return 0;
  }
  if (event->ticket)
    stream->queue.push_back({[] {}, event->ticket});
  return 0;
}

bool Queues::runOne() {
  std::vector<Stream *> ready;
  auto consider = [&](Stream *stream) {
    if (stream->queue.empty())
      return;
    uint64_t ticket = stream->queue.front().waitsFor;
    if (ticket == 0 || doneTickets.count(ticket))
      ready.push_back(stream);
  };
  consider(&legacy);
  for (const auto &stream : streams)
    consider(stream.get());
  if (ready.empty())
    return false;
  auto first = std::find(ready.begin(), ready.end(),
                         preferred ? stream(preferred) : nullptr);
  Stream *chosen =
      first != ready.end() ? *first : ready[random() % ready.size()];
  Work work = std::move(chosen->queue.front());
  chosen->queue.pop_front();
  work.run();
  return true;
}

void Queues::finish(Stream *stream) {
  while (!stream->queue.empty())
    if (!runOne())
      throw std::runtime_error("deadlock of streams");
}

void Queues::finish(uint64_t ticket) {
  while (ticket && !doneTickets.count(ticket))
    if (!runOne())
      throw std::runtime_error("deadlock of events");
}

void Queues::finishAll() {
  while (runOne()) {
  }
}

void Queues::beginCapture(Stream *stream) {
  captures.push_back(std::make_unique<Capture>());
  captures.back()->origin = stream;
  stream->capture = captures.back().get();
}

Graph Queues::endCapture(Stream *stream) {
  Capture *capture = stream->capture;
  bool unjoined = !capture->unjoined.empty();
  for (const auto &other : streams)
    if (other->capture == capture)
      other->capture = nullptr;
  legacy.capture = nullptr;
  auto found = std::find_if(
      captures.begin(), captures.end(),
      [&](const auto &candidate) { return candidate.get() == capture; });
  ended.push_back(std::move(*found)); // events may still point to it
  captures.erase(found);
  if (unjoined)
    throw std::runtime_error("the capture has unjoined work");
  return std::move(capture->graph);
}

} // namespace fake
