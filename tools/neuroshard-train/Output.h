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

/// Writes a cost model with its card, and prints its figures.
template <typename Parameters>
Expected<void> writeModel(Parameters &parameters, const CardFacts &facts) {
  Expected<std::string> card = makeCard(facts);
  if (!card)
    return tl::unexpected(card.error());
  parameters.card = *card;
  Expected<TensorFile> file = toTensorFile(parameters);
  if (!file)
    return tl::unexpected(file.error());
  if (Expected<void> done = writeTensorFile(*file, facts.settings.output);
      !done)
    return done;
  EvaluationTable table = facts.heldOut;
  table.add(facts.repeats.rows);
  return showTable(table, "");
}

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_OUTPUT_H
