//===- EditBatch.cpp - Steps judged together in one model call ------------===//

#include "EditBatch.h"

using namespace neuroshard;

void EditBatch::clear() {
  batch.clear();
  edits.clear();
  changes.clear();
  results.clear();
}

size_t EditBatch::request(const Edit &edit, bool target) {
  const SearchContext &context = board->context();
  const Piece &first = board->piece(edit.piece);
  int device = target ? edit.target : first.device;
  bool same = first.device == edit.target;
  size_t classIndex = context.classIndexOf(device);
  if (!context.model.sumEmbedding())
    return batch.add(board->worksAfter(edit, target), classIndex);
  int shards = board->shardsOn(device);
  const PieceFacts *gone[2] = {}, *come[3] = {};
  if (!target || same) {
    gone[0] = first.facts;
    come[0] = edit.after;
    come[2] = edit.extra;
  }
  if (target || same) {
    gone[1] = edit.other >= 0 ? board->piece(edit.other).facts : nullptr;
    come[1] = edit.otherAfter;
  }
  for (const PieceFacts *facts : gone)
    shards -= facts ? static_cast<int>(facts->works.size()) : 0;
  for (const PieceFacts *facts : come)
    shards += facts ? static_cast<int>(facts->works.size()) : 0;
  size_t result = 0;
  double *row = batch.addRow(shards, classIndex, result);
  std::span<const double> sum = board->sumOf(device);
  size_t offset = classIndex * sum.size();
  for (size_t k = 0; k < sum.size(); ++k)
    row[k] = sum[k];
  for (const PieceFacts *facts : gone)
    for (size_t k = 0; facts && k < sum.size(); ++k)
      row[k] -= facts->embedding[offset + k];
  for (const PieceFacts *facts : come)
    for (size_t k = 0; facts && k < sum.size(); ++k)
      row[k] += facts->embedding[offset + k];
  return result;
}

void EditBatch::add(const Edit &edit) {
  LoadChange &change = changes.emplace_back();
  change.device = board->piece(edit.piece).device;
  change.target = edit.target;
  change.load = board->loadAfter(edit, false);
  change.targetLoad = change.device == change.target
                          ? change.load
                          : board->loadAfter(edit, true);
  size_t here = request(edit, false);
  size_t there = change.device == change.target ? here : request(edit, true);
  results.emplace_back(here, there);
  edits.push_back(edit);
}

void EditBatch::run() {
  batch.run();
  for (size_t i = 0; i < changes.size(); ++i) {
    changes[i].load.compute = batch[results[i].first];
    changes[i].targetLoad.compute = batch[results[i].second];
  }
}
