//===- TerminalProgress.cpp - Progress of a search on a terminal ----------===//

#include "neuroshard/Planner/TerminalProgress.h"

#include <cmath>
#include <cstdio>
#include <unistd.h>
#include <utility>

using namespace neuroshard;

/// Shorter searches show no progress.
static constexpr double kQuietSeconds = 1;

TerminalProgress::TerminalProgress(std::string what)
    : what(std::move(what)), terminal(isatty(STDERR_FILENO) == 1) {}

TerminalProgress::~TerminalProgress() {
  if (shown)
    std::fputs("\n", stderr);
}

std::function<bool(const SearchProgress &)> TerminalProgress::callback() {
  if (!terminal)
    return nullptr;
  return [this](const SearchProgress &progress) {
    show(progress);
    return true;
  };
}

void TerminalProgress::show(const SearchProgress &progress) {
  if (progress.seconds < kQuietSeconds)
    return;
  shown = true;
  std::fprintf(stderr, "\r%s: %3.0f %%, %.0f s, %.*s", what.c_str(),
               100 * progress.share, progress.seconds,
               static_cast<int>(progress.phase.size()), progress.phase.data());
  if (std::isfinite(progress.bestCostMs))
    std::fprintf(stderr, ", best so far %.3f ms", progress.bestCostMs);
  std::fputs("\x1b[K", stderr);
}
