//===- EndingSignals.cpp - Removes work in progress on signals ------------===//
//
// A thread waits for the signals, which all others block: a signal handler
// could not remove a folder safely.
//
//===----------------------------------------------------------------------===//

#include "EndingSignals.h"

#include "llvm/Support/FileSystem.h"

#include <csignal>
#include <thread>
#include <unistd.h>
#include <utility>

namespace neuroshard {

namespace {

struct Ending {
  std::mutex mutex;
  std::string folder;
};

/// Never destroyed: the thread outlives main().
Ending &ending() {
  static Ending &one = *new Ending;
  return one;
}

/// Those that the parent process has not asked to ignore, as nohup does.
sigset_t endingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN)
      sigaddset(&signals, signal);
  }
  return signals;
}

void endOnSignal(sigset_t signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  std::lock_guard held(ending().mutex);
  // Other threads may be writing files into it still.
  const std::string &folder = ending().folder;
  for (int i = 0; i < 1000 && !folder.empty(); ++i)
    if (llvm::sys::fs::remove_directories(folder, /*IgnoreErrors=*/true);
        !llvm::sys::fs::exists(folder))
      break;
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  kill(getpid(), signal);
}

} // namespace

void watchEndingSignals() {
  sigset_t signals = endingSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread(endOnSignal, signals).detach();
}

std::unique_lock<std::mutex> holdEnding() {
  return std::unique_lock(ending().mutex);
}

void removeOnEnding(const std::unique_lock<std::mutex> &, std::string folder) {
  ending().folder = std::move(folder);
}

} // namespace neuroshard
