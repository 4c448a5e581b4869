//===- EditBatch.h - Edits judged together in one model call ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EDITBATCH_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EDITBATCH_H

#include "MoveEstimate.h"
#include "Units/ComputeBatch.h"

#include <vector>

namespace neuroshard {

/// Edits of one board, with the loads that they lead to.
///
/// One call for many edits is faster for models with wide layers. For small
/// sums judge() is better, because edits after an accepted one need no
/// judgement.
class EditBatch {
public:
  explicit EditBatch(const Board &board)
      : board(&board), batch(board.context()) {}

  void clear();
  /// Adds an edit that fits.
  void add(const Edit &edit);
  /// Asks the model for the compute of all devices that the edits change.
  void run();

  size_t size() const { return edits.size(); }
  const Edit &edit(size_t index) const { return edits[index]; }
  const LoadChange &change(size_t index) const { return changes[index]; }

  /// Judges one edit at once, for a model whose head is cheap to call.
  static void judge(const Board &board, const Edit &edit, LoadChange &change);

private:
  size_t request(const Edit &edit, bool target, int period);

  const Board *board;
  ComputeBatch batch;
  std::vector<Edit> edits;
  std::vector<LoadChange> changes;
  /// For each edit and, with snapshots, each period: the results in `batch` of
  /// its two devices.
  std::vector<std::pair<size_t, size_t>> results;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EDITBATCH_H
