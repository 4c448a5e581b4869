//===- StagedExchange.h - Exchanges over relays, stage by stage -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_STAGEDEXCHANGE_H
#define NEUROSHARD_LIB_PLANNER_COST_STAGEDEXCHANGE_H

#include "neuroshard/Planner/DeviceLoad.h"

#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace neuroshard {

/// What devices with these loads exchange in one direction: at once, or, if
/// there are relays, in two stages. Results go to relays and then across;
/// gradients across and then to owners. What goes directly is in the messages
/// of the first. Without the sums of copies below.
std::vector<Traffic> exchangeStages(const Topology &topology,
                                    std::span<const DeviceLoad> loads,
                                    std::span<const RelayLoad> relays,
                                    Direction direction);

/// Sums of gradients that copies of shards exchange once they have these, if
/// there are any.
std::optional<Traffic> copySumStage(const Topology &topology,
                                    std::span<const DeviceLoad> loads);

/// What copies that drift exchange when they are averaged, if there are any: as
/// much as `perStep` such exchanges in a step send on the mean.
std::optional<Traffic> averageStage(const Topology &topology,
                                    std::span<const DeviceLoad> loads,
                                    double &perStep);

/// The exchanges of sums of rows that go on beside updates of other tables,
/// once gradients are there: of the totals, or between groups and back, within
/// them.
std::vector<Traffic> sumStages(const Topology &topology,
                               std::span<const DeviceLoad> loads);

/// In how many pieces (Artifact/RelayPieces.h) each relay exchanges what goes
/// by relay.
int64_t piecesOf(std::span<const RelayLoad> relays, Direction direction);

/// The time of stages, each after the one before; of what comes in pieces, the
/// second stage of one goes beside the first stage of the next.
class StagedExchange {
public:
  StagedExchange(const CostModel &model, const Topology &topology,
                 std::span<const DeviceLoad> loads,
                 std::span<const RelayLoad> relays, Direction direction);

  /// CostModel::communicationMs(), the sum of the stages, less what overlaps.
  std::vector<double> timesMs(std::span<const double> startSkewsMs = {});

  /// After timesMs(): what the stages after the first take.
  double laterStagesMs() const {
    return std::accumulate(slowestMs.begin() + 1, slowestMs.end(), 0.0);
  }

  /// CostModel::arrivalsMs() of the last stage. After timesMs() without skews.
  /// `makesMs`: of each device, how long it makes what goes by relay, piece by
  /// piece, before it has all at `startsMs`.
  std::vector<double> arrivalsMs(std::vector<double> startsMs,
                                 std::span<const double> makesMs = {}) const;
  /// After timesMs(): when sums of rows are there, if their exchanges start
  /// at `startsMs`; these if there are none.
  std::vector<double> sumArrivalsMs(std::vector<double> startsMs) const;

  /// What averages of copies take in a mean step, after its updates.
  double averagesMs() const;

private:
  /// The same without sums of copies.
  std::vector<double> valueTimesMs(std::span<const double> startSkewsMs);
  std::vector<double> valueArrivalsMs(std::vector<double> startsMs,
                                      std::span<const double> makesMs) const;
  double slowestOf(const Traffic &stage) const;
  std::vector<double> after(const Traffic &stage, double slowestMs,
                            std::span<const double> startsMs) const {
    return model.arrivalsMs(stage, startsMs, slowestMs, direction);
  }

  /// What all pieces take of the first stage, and of the second.
  double piecesMs(size_t stage) const;
  void measurePieces();

  const CostModel &model;
  std::vector<Traffic> stages;
  Direction direction;
  std::optional<Traffic> copySums;
  std::optional<Traffic> averages;
  double averagesPerStep = 0;
  std::vector<Traffic> sums;     ///< of rows.
  std::vector<double> slowestMs; ///< of each stage of values.
  double copySumsMs = 0, lateSumsMs = 0;

  int64_t pieces = 1;
  /// Stages of the first piece, with what goes directly, and of a later one;
  /// empty if there is one alone.
  std::vector<Traffic> firstPiece, laterPiece;
  double firstPieceMs = 0; ///< its first stage.
  double laterPieceMs[2] = {};
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_STAGEDEXCHANGE_H
