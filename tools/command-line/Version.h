//===- Version.h - Version of the project -----------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMMAND_LINE_VERSION_H
#define NEUROSHARD_TOOLS_COMMAND_LINE_VERSION_H

namespace neuroshard {

/// The version of the project, such as "0.1.0".
const char *projectVersion();

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMMAND_LINE_VERSION_H
