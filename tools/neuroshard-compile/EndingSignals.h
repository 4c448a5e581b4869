//===- EndingSignals.h - Removes work in progress on signals ----*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_ENDINGSIGNALS_H
#define NEUROSHARD_TOOLS_COMPILE_ENDINGSIGNALS_H

#include <mutex>
#include <string>

namespace neuroshard {

/// Makes SIGHUP, SIGINT and SIGTERM remove the folder of removeOnEnding()
/// before they end the process. To be called before any thread starts.
void watchEndingSignals();

/// Holds these signals back while the result lives.
std::unique_lock<std::mutex> holdEnding();

/// The folder that they remove; "": none. `held` is of holdEnding().
void removeOnEnding(const std::unique_lock<std::mutex> &held,
                    std::string folder);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_ENDINGSIGNALS_H
