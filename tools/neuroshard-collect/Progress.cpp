//===- Progress.cpp - Progress lines and interrupts -----------------------===//

#include "Progress.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <unistd.h>

using namespace neuroshard;

namespace {

std::atomic<bool> stop = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set by a handler");
bool lineIsOpen = false;

void handleSignal(int signal) {
  stop = true;
  std::signal(signal, SIG_DFL);
}

} // namespace

const std::atomic<bool> &neuroshard::stopRequested() {
  static bool installed = [] {
    std::signal(SIGINT, handleSignal);
    std::signal(SIGTERM, handleSignal);
    return true;
  }();
  (void)installed;
  return stop;
}

void neuroshard::showProgress(const std::string &line) {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last;
  if (isatty(STDERR_FILENO)) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    lineIsOpen = true;
    return;
  }
  if (last != Clock::time_point() &&
      Clock::now() - last < std::chrono::seconds(30))
    return;
  last = Clock::now();
  std::fprintf(stderr, "%s\n", line.c_str());
}

void neuroshard::endProgress() {
  if (lineIsOpen)
    std::fprintf(stderr, "\n");
  lineIsOpen = false;
}

std::string neuroshard::formatSeconds(double seconds) {
  long whole = std::lround(seconds);
  if (whole < 120)
    return std::to_string(whole) + " s";
  long minutes = (whole + 30) / 60;
  if (minutes < 60)
    return std::to_string(minutes) + " min";
  std::string rest = std::to_string(minutes % 60);
  return std::to_string(minutes / 60) + " h " + (rest.size() < 2 ? "0" : "") +
         rest + " min";
}
