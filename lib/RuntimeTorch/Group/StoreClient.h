//===- StoreClient.h - Store requests with a time limit ---------*- C++ -*-===//
//
// Requests to a store of c10d that fail when the store does not answer. Those
// of c10d wait for ever if its process is stopped or its machine is lost.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_GROUP_STORECLIENT_H
#define NEUROSHARD_LIB_RUNTIMETORCH_GROUP_STORECLIENT_H

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace neuroshard::runtime {

/// Requests throw when they fail. After the first that has failed all others
/// fail at once: a broken connection does not come back, and torch prints a
/// warning for each attempt.
class StoreClient {
public:
  /// Uses a connection of its own to `store`. A request takes `limit` at most.
  StoreClient(c10::intrusive_ptr<c10d::Store> store,
              std::chrono::milliseconds limit);
  ~StoreClient();
  /// Makes all later requests fail.
  void close() noexcept;

  void set(const std::string &key, const std::string &value);
  /// Sets the key unless it is there. Returns the value that it has then.
  std::string setFirst(const std::string &key, const std::string &value);
  int64_t add(const std::string &key, int64_t value);
  bool has(const std::string &key);
  /// Returns "" if there is no such key.
  std::string read(const std::string &key);

  /// Whether a request has failed.
  bool isLost() const { return lost; }

private:
  class Worker;

  void run(std::function<void(c10d::Store &)> request);

  const std::chrono::milliseconds limit;
  std::atomic<bool> lost{false};
  std::atomic<bool> stuck{false};
  std::shared_ptr<Worker> worker; ///< shared with the thread.
  std::thread thread;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_GROUP_STORECLIENT_H
