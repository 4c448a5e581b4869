//===- Card.h - Cards in model files ----------------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRAIN_CARD_H
#define NEUROSHARD_TOOLS_TRAIN_CARD_H

#include "Settings.h"

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Training/Evaluation.h"
#include "neuroshard/Training/Interval.h"
#include "neuroshard/Training/Options.h"
#include "neuroshard/Training/PlacementTraining.h"
#include "neuroshard/Training/Split.h"

#include <map>
#include <optional>
#include <string>

namespace neuroshard {

/// What the card of a cost model states.
struct CardFacts {
  const Settings &settings;
  /// Metadata of the data files.
  std::map<std::string, std::string> metadata;
  Split split;
  EvaluationTable heldOut;
  EvaluationTable repeats;
  std::optional<JudgedInterval> interval;
};

/// The card as JSON. It holds nothing that changes from run to run, so that the
/// same data gives the same file.
Expected<std::string> makeCard(const CardFacts &facts);

/// A card that says where the interval of the model comes from.
std::string withInterval(const std::string &card,
                         const JudgedInterval &interval);

/// The card of a placement policy as JSON: settings and learning curve.
std::string makePlacementCard(const PlacementTrainingOptions &options,
                              const TrainedPlacement &trained);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRAIN_CARD_H
