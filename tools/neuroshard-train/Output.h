//===- Output.h - Checks and writes output files ----------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_OUTPUT_H
#define NEUROSHARD_TOOLS_TRAIN_OUTPUT_H

#include "Card.h"
#include "Settings.h"

#include "neuroshard/CostModel/Safetensors.h"
#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Training/Evaluation.h"

namespace neuroshard {

/// An error, before hours of work, if the output cannot be written or is one of
/// the inputs.
Expected<void> checkOutput(const Settings &settings);

/// Prints the table, and writes it to `path` unless that is empty: as JSON if
/// it ends in .json, else as markdown.
Expected<void> showTable(const EvaluationTable &table, const std::string &path);

/// Prints the interval, and how many of the times that judge it lie inside.
void showInterval(const std::optional<JudgedInterval> &interval);

template <typename Parameters>
Expected<void> writeParameters(const Parameters &parameters,
                               const std::string &path) {
  Expected<TensorFile> file = toTensorFile(parameters);
  if (!file)
    return tl::unexpected(file.error());
  return writeTensorFile(*file, path);
}

/// Writes a cost model with its card, and prints its figures.
template <typename Parameters>
Expected<void> writeModel(Parameters &parameters, const CardFacts &facts) {
  Expected<std::string> card = makeCard(facts);
  if (!card)
    return tl::unexpected(card.error());
  parameters.card = *card;
  if (facts.interval)
    parameters.interval = facts.interval->interval;
  if (Expected<void> done = writeParameters(parameters, facts.settings.output);
      !done)
    return done;
  EvaluationTable table = facts.heldOut;
  table.add(facts.repeats.rows);
  if (Expected<void> shown = showTable(table, ""); !shown)
    return shown;
  showInterval(facts.interval);
  return {};
}

/// Writes a cost model again, with another interval. Its weights stay the same
/// bits.
template <typename Parameters>
Expected<void> writeInterval(Parameters &parameters,
                             const std::optional<JudgedInterval> &interval,
                             const std::string &path) {
  if (!interval)
    return failure("data", "expected at least 2 held-out samples");
  parameters.interval = interval->interval;
  parameters.card = withInterval(parameters.card, *interval);
  if (Expected<void> done = writeParameters(parameters, path); !done)
    return done;
  showInterval(interval);
  return {};
}

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_OUTPUT_H
