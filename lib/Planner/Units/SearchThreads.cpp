//===- SearchThreads.cpp - The threads of a search ------------------------===//

#include "SearchThreads.h"

#include <system_error>

using namespace neuroshard;

SearchThreads::~SearchThreads() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  for (std::thread &helper : helpers)
    helper.join();
}

void SearchThreads::start() {
  started = true;
  try {
    for (int i = 1; i < count; ++i)
      helpers.emplace_back([this] { serve(); });
  } catch (const std::system_error &) {
    // The system refuses more threads: those that run share the work.
  }
}

void SearchThreads::takeItems(std::unique_lock<std::mutex> &lock) {
  while (next < end) {
    size_t item = next++;
    ++running;
    lock.unlock();
    (*current)(item);
    lock.lock();
    --running;
  }
}

void SearchThreads::serve() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    wake.wait(lock, [this] { return stopping || next < end; });
    if (stopping)
      return;
    takeItems(lock);
    if (running == 0)
      done.notify_all();
  }
}

void SearchThreads::forEach(size_t items,
                            const std::function<void(size_t)> &work) {
  if (count == 1 || items <= 1) {
    for (size_t i = 0; i < items; ++i)
      work(i);
    return;
  }
  if (!started)
    start();
  std::unique_lock<std::mutex> lock(mutex);
  current = &work;
  next = 0;
  end = items;
  wake.notify_all();
  takeItems(lock);
  done.wait(lock, [this] { return running == 0; });
  current = nullptr;
}
