//===- OwnedMutex.h - A mutex that knows who holds it -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_OWNEDMUTEX_H
#define NEUROSHARD_LIB_RUNTIMETORCH_OWNEDMUTEX_H

#include <atomic>
#include <mutex>
#include <thread>

namespace neuroshard::runtime {

/// For std::lock_guard and std::unique_lock. A thread that may hold it already
/// asks before it tries to lock it.
class OwnedMutex {
public:
  void lock() {
    mutex.lock();
    owner = std::this_thread::get_id();
  }
  bool try_lock() {
    bool isLocked = mutex.try_lock();
    if (isLocked)
      owner = std::this_thread::get_id();
    return isLocked;
  }
  void unlock() {
    owner = std::thread::id();
    mutex.unlock();
  }
  bool isHeldHere() const { return owner.load() == std::this_thread::get_id(); }

private:
  std::mutex mutex;
  std::atomic<std::thread::id> owner;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_OWNEDMUTEX_H
