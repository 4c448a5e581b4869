//===- Progress.h - Progress of training on stderr --------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_PROGRESS_H
#define NEUROSHARD_TOOLS_TRAIN_PROGRESS_H

#include "neuroshard/Training/Options.h"

#include <chrono>
#include <map>
#include <string>

namespace neuroshard {

/// Writes to stderr how far all members are and about how long it still takes:
/// over one line of a terminal, or a line every ten seconds elsewhere.
class Progress {
public:
  explicit Progress(std::string what);
  /// Ends the line.
  ~Progress();
  void operator()(const TrainingProgress &now);

private:
  using Clock = std::chrono::steady_clock;
  std::string what;
  bool terminal;
  Clock::time_point start = Clock::now();
  Clock::time_point lastShown;
  std::map<int, int64_t> epochs;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_PROGRESS_H
