//===- IoQueue.cpp - Transfers of a device, one after the other -----------===//

#include "IoQueue.h"
#include "neuroshard/Artifact/Error.h"

#include <exception>
#include <utility>

namespace neuroshard::runtime {

IoQueue::IoQueue() : worker([this] { work(); }) {}

IoQueue::~IoQueue() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  worker.join();
}

int64_t IoQueue::submit(Job job) {
  int64_t number;
  {
    std::lock_guard lock(mutex);
    jobs.push_back(std::move(job));
    number = ++submitted;
  }
  changed.notify_all();
  return number;
}

void IoQueue::wait(int64_t number) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done >= number; });
  if (!error.empty())
    throw RuntimeError(error);
}

void IoQueue::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopping || !jobs.empty(); });
    if (jobs.empty())
      return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    bool runs = error.empty();
    lock.unlock();
    std::string failure;
    try {
      if (runs)
        job(io);
    } catch (const std::exception &exception) {
      failure = exception.what();
    }
    lock.lock();
    if (!failure.empty())
      error = failure;
    ++done;
    changed.notify_all();
  }
}

} // namespace neuroshard::runtime
