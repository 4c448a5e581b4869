//===- StoreClient.cpp - Store requests with a time limit -----------------===//
//
// A thread makes the requests and the callers wait for it. If it does not come
// back from one, it is left behind with all that it uses.
//
//===----------------------------------------------------------------------===//

#include "StoreClient.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace neuroshard::runtime {

using namespace std::chrono_literals;

class StoreClient::Worker {
public:
  using Request = std::function<void(c10d::Store &)>;

  Worker(c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds limit)
      : shared(std::move(store)), connectLimit(std::min(limit, kConnectLimit)) {
  }

  std::future<void> push(Request request) {
    std::packaged_task<void()> task(
        [this, request = std::move(request)] { request(connection()); });
    auto answer = task.get_future();
    {
      std::lock_guard lock(mutex);
      waiting.push_back(std::move(task));
    }
    changed.notify_one();
    return answer;
  }

  void close() {
    {
      std::lock_guard lock(mutex);
      closed = true;
    }
    changed.notify_one();
  }

  void serve() {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return closed || !waiting.empty(); });
      if (closed)
        return;
      auto task = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      task();
    }
  }

private:
  static constexpr std::chrono::milliseconds kConnectLimit = 10s;

  c10d::Store &connection() {
    if (!own) {
      // The timeout of the store's user allows for ranks that come late: we
      // would retry as long when its process is gone.
      c10d::StoreTimeoutGuard guard(*shared, connectLimit);
      own = shared->clone();
    }
    shared.reset(); // of the rank that has the store, its end must not wait
    return *own;
  }

  // Used by the thread only.
  c10::intrusive_ptr<c10d::Store> shared; ///< null once it is connected.
  const std::chrono::milliseconds connectLimit;
  c10::intrusive_ptr<c10d::Store> own;

  std::mutex mutex; ///< guards what follows.
  std::condition_variable changed;
  std::deque<std::packaged_task<void()>> waiting;
  bool closed = false;
};

StoreClient::StoreClient(c10::intrusive_ptr<c10d::Store> store,
                         std::chrono::milliseconds limit)
    : limit(limit), worker(std::make_shared<Worker>(std::move(store), limit)),
      thread([worker = worker] { worker->serve(); }) {}

StoreClient::~StoreClient() { close(); }

void StoreClient::close() noexcept {
  lost = true;
  worker->close();
  if (!thread.joinable())
    return;
  if (stuck)
    thread.detach();
  else
    thread.join();
}

/// Counts slices of waiting and not time: if this process itself was stopped
/// for a while, the store has not been silent.
void StoreClient::run(std::function<void(c10d::Store &)> request) {
  constexpr auto kSlice = 200ms;
  if (lost)
    throw std::runtime_error("the store is lost");
  auto answer = worker->push(std::move(request));
  for (std::chrono::milliseconds waited{}; waited < limit; waited += kSlice)
    if (answer.wait_for(kSlice) == std::future_status::ready) {
      try {
        return answer.get();
      } catch (...) {
        lost = true;
        throw;
      }
    }
  lost = stuck = true;
  throw std::runtime_error("the store does not answer");
}

void StoreClient::set(const std::string &key, const std::string &value) {
  run([key, value](c10d::Store &store) { store.set(key, value); });
}

std::string StoreClient::setFirst(const std::string &key,
                                  const std::string &value) {
  auto kept = std::make_shared<std::string>();
  run([=](c10d::Store &store) { *kept = store.compareSet(key, "", value); });
  return *kept;
}

int64_t StoreClient::add(const std::string &key, int64_t value) {
  auto sum = std::make_shared<int64_t>();
  run([=](c10d::Store &store) { *sum = store.add(key, value); });
  return *sum;
}

bool StoreClient::has(const std::string &key) {
  auto found = std::make_shared<bool>();
  run([=](c10d::Store &store) { *found = store.check({key}); });
  return *found;
}

std::string StoreClient::read(const std::string &key) {
  auto value = std::make_shared<std::string>();
  run([=](c10d::Store &store) {
    if (store.check({key})) // get would wait for the key
      *value = store.get_to_str(key);
  });
  return *value;
}

} // namespace neuroshard::runtime
