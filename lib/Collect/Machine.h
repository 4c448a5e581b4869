//===- Machine.h - Describes the machine of a measurement -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COLLECT_MACHINE_H
#define NEUROSHARD_LIB_COLLECT_MACHINE_H

#include <map>
#include <string>

namespace neuroshard::collect {

/// "machine" (processor, cores, memory), "compiler", "created" (date, UTC).
std::map<std::string, std::string> describeMachine();

} // namespace neuroshard::collect

#endif // NEUROSHARD_LIB_COLLECT_MACHINE_H
