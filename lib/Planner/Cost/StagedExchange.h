//===- StagedExchange.h - Exchanges over relays, stage by stage -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_STAGEDEXCHANGE_H
#define NEUROSHARD_LIB_PLANNER_COST_STAGEDEXCHANGE_H

#include "neuroshard/Planner/DeviceLoad.h"

#include <numeric>
#include <span>
#include <vector>

namespace neuroshard {

/// What devices with these loads exchange in one direction: at once, or, if
/// there are relays, in two stages. Results go to relays and then across;
/// gradients across and then to owners. What goes directly is in the messages
/// of the first.
std::vector<Traffic> exchangeStages(const Topology &topology,
                                    std::span<const DeviceLoad> loads,
                                    std::span<const RelayLoad> relays,
                                    Direction direction);

/// The time of stages, each after the one before. What goes by relay comes in
/// pieces (Artifact/RelayPieces.h): the second stage of one goes beside the
/// first stage of the next.
class StagedExchange {
public:
  StagedExchange(const CostModel &model, const Topology &topology,
                 std::span<const DeviceLoad> loads,
                 std::span<const RelayLoad> relays, Direction direction);

  /// CostModel::communicationMs(), the sum of the stages: without pieces.
  std::vector<double> timesMs(std::span<const double> startSkewsMs = {});

  /// After timesMs(): what the stages after the first take.
  double laterStagesMs() const {
    return std::accumulate(slowestMs.begin() + 1, slowestMs.end(), 0.0);
  }

  /// CostModel::arrivalsMs() of the last stage. After timesMs() without skews.
  std::vector<double> arrivalsMs(std::vector<double> startsMs) const;

private:
  double slowestOf(const Traffic &stage) const;
  std::vector<double> after(const Traffic &stage, double slowestMs,
                            std::span<const double> startsMs) const {
    return model.arrivalsMs(stage, startsMs, slowestMs, direction);
  }

  const CostModel &model;
  std::vector<Traffic> stages;
  /// Of one piece of several, with what goes directly; else empty.
  std::vector<Traffic> pieceStages;
  Direction direction;
  std::vector<double> slowestMs; ///< of each stage.
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_STAGEDEXCHANGE_H
