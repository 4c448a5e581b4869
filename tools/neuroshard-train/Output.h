//===- Output.h - Checks and writes output files ----------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_OUTPUT_H
#define NEUROSHARD_TOOLS_TRAIN_OUTPUT_H

#include "Settings.h"

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Training/Evaluation.h"

namespace neuroshard {

/// An error, before hours of work, if the output cannot be written or is one of
/// the inputs.
Expected<void> checkOutput(const Settings &settings);

/// Prints the table, and writes it to `path` unless that is empty: as JSON if
/// it ends in .json, else as markdown.
Expected<void> showTable(const EvaluationTable &table, const std::string &path);

/// Adds the name of a file to the places of diagnostics.
Diagnostics placeIn(const std::string &path, Diagnostics diagnostics);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_OUTPUT_H
