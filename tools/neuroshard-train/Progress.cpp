//===- Progress.cpp - Progress of training on stderr ----------------------===//

#include "Progress.h"

#include <cstdio>
#include <unistd.h>

using namespace neuroshard;

Progress::Progress(std::string what)
    : what(std::move(what)), terminal(isatty(STDERR_FILENO)), lastShown(start) {
}

Progress::~Progress() {
  if (terminal)
    std::fputs("\n", stderr);
}

void Progress::operator()(const TrainingProgress &now) {
  epochs[now.member] = now.epoch;
  Clock::time_point time = Clock::now();
  if (time - lastShown < std::chrono::milliseconds(terminal ? 200 : 10000))
    return;
  lastShown = time;
  double done = 0;
  for (auto [member, epoch] : epochs)
    done += static_cast<double>(epoch);
  double share = done / static_cast<double>(now.epochs * now.members);
  double seconds = std::chrono::duration<double>(time - start).count();
  std::fprintf(
      stderr, "%s%s: %.0f %%, validation loss %.4f, at most %.0f s left%s",
      terminal ? "\r" : "", what.c_str(), 100 * share, now.validationLoss,
      seconds * (1 - share) / share, terminal ? "   " : "\n");
}
