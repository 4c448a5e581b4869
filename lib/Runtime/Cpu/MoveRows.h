//===- MoveRows.h - Copies and sums of rows ---------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIME_CPU_MOVEROWS_H
#define NEUROSHARD_LIB_RUNTIME_CPU_MOVEROWS_H

#include "neuroshard/Runtime/Backend.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <span>

namespace neuroshard::runtime {

/// Runs all moves on all threads, cut into pieces of about the same size.
void runMoves(std::span<const RowMove> moves, ThreadPool &threads);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_CPU_MOVEROWS_H
