//===- TerminalProgress.h - Progress of a search on a terminal --*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_TERMINALPROGRESS_H
#define NEUROSHARD_PLANNER_TERMINALPROGRESS_H

#include "neuroshard/Planner/Search.h"

#include <string>

namespace neuroshard {

/// One line on stderr that says how far a search is, from the second second
/// on; nothing when stderr is no terminal. Ends the line when it goes.
class TerminalProgress {
public:
  /// `what`: the beginning of the line.
  explicit TerminalProgress(std::string what);
  ~TerminalProgress();
  TerminalProgress(const TerminalProgress &) = delete;
  TerminalProgress &operator=(const TerminalProgress &) = delete;

  /// For SearchOptions::progress, while this object lives.
  std::function<bool(const SearchProgress &)> callback();

private:
  void show(const SearchProgress &progress);

  std::string what;
  bool terminal = false;
  bool shown = false;
};

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_TERMINALPROGRESS_H
