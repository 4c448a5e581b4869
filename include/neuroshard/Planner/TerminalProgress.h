//===- TerminalProgress.h - Progress of a search on a terminal --*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_TERMINALPROGRESS_H
#define NEUROSHARD_PLANNER_TERMINALPROGRESS_H

#include "neuroshard/Planner/Search.h"

#include <string>

namespace neuroshard {

/// Shows the progress of a search in one line on stderr, from its second second
/// on, if stderr is a terminal. The destructor ends the line.
class TerminalProgress {
public:
  /// `what`: the beginning of the line.
  explicit TerminalProgress(std::string what);
  ~TerminalProgress();
  TerminalProgress(const TerminalProgress &) = delete;
  TerminalProgress &operator=(const TerminalProgress &) = delete;

  /// A receiver for SearchOptions::progress; the object must outlive it.
  std::function<bool(const SearchProgress &)> callback();

private:
  void show(const SearchProgress &progress);

  std::string what;
  bool terminal = false;
  bool shown = false;
};

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_TERMINALPROGRESS_H
