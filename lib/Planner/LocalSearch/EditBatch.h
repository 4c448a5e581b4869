//===- EditBatch.h - Moves judged together in one model call ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EDITBATCH_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EDITBATCH_H

#include "MoveEstimate.h"
#include "Units/ComputeBatch.h"

#include <vector>

namespace neuroshard {

/// Steps from one board, with the loads they lead to.
///
/// One call for many steps pays for models with wide layers; with a sum of a
/// few numbers, judge() saves the steps that an accepted one makes void.
class EditBatch {
public:
  explicit EditBatch(const Board &board)
      : board(&board), batch(board.context()) {}

  void clear();
  /// Takes a step that fits.
  void add(const Edit &edit);
  /// Asks the model for the compute of all devices changed.
  void run();

  size_t size() const { return edits.size(); }
  const Edit &edit(size_t index) const { return edits[index]; }
  const LoadChange &change(size_t index) const { return changes[index]; }

  /// Judges one step at once, for a model whose head is cheap to call.
  static void judge(const Board &board, const Edit &edit, LoadChange &change);

private:
  size_t request(const Edit &edit, bool target, int period);

  const Board *board;
  ComputeBatch batch;
  std::vector<Edit> edits;
  std::vector<LoadChange> changes;
  /// Of each step, one after the other for each period: the two devices'.
  std::vector<std::pair<size_t, size_t>> results;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_EDITBATCH_H
