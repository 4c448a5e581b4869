//===- Progress.h - Progress lines and interrupts ---------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COLLECT_PROGRESS_H
#define NEUROSHARD_TOOLS_COLLECT_PROGRESS_H

#include <atomic>
#include <string>

namespace neuroshard {

/// Set by the first SIGINT or SIGTERM; the second one ends the program.
const std::atomic<bool> &stopRequested();

/// Shows a line on stderr: on a terminal in place of the last one, otherwise
/// every 30 seconds.
void showProgress(const std::string &line);

/// Ends the line that showProgress keeps replacing.
void endProgress();

/// "1 h 04 min", "12 min", "35 s".
std::string formatSeconds(double seconds);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COLLECT_PROGRESS_H
