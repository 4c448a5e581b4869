//===- EditBatch.cpp - Steps judged together in one model call ------------===//

#include "EditBatch.h"

#include <array>

using namespace neuroshard;

void EditBatch::clear() {
  batch.clear();
  edits.clear();
  changes.clear();
  results.clear();
}

/// Writes the sum of one of the two devices afterwards; returns its shards.
static int sumAfter(const Board &board, const Edit &edit, bool target,
                    double *row) {
  const Piece &first = board.piece(edit.piece);
  int device = target ? edit.target : first.device;
  bool same = first.device == edit.target;
  std::span<const double> sum = board.sumOf(device);
  size_t offset = board.context().classIndexOf(device) * sum.size();
  int shards = board.shardsOn(device);
  for (size_t k = 0; k < sum.size(); ++k)
    row[k] = sum[k];
  auto leaves = [&](const PieceFacts *facts) {
    shards -= facts->shards;
    for (size_t k = 0; k < sum.size(); ++k)
      row[k] -= facts->embedding[offset + k];
  };
  auto comes = [&](const PieceFacts *facts) {
    if (!facts)
      return;
    shards += facts->shards;
    for (size_t k = 0; k < sum.size(); ++k)
      row[k] += facts->embedding[offset + k];
  };
  if (!target || same)
    leaves(first.facts);
  if ((target || same) && edit.other >= 0)
    leaves(board.piece(edit.other).facts);
  if (!target || same)
    comes(edit.after);
  if (target || same)
    comes(edit.otherAfter);
  if (!target || same)
    comes(edit.extra);
  return shards;
}

size_t EditBatch::request(const Edit &edit, bool target) {
  const SearchContext &context = board->context();
  size_t classIndex = context.classIndexOf(
      target ? edit.target : board->piece(edit.piece).device);
  if (!context.model.sumEmbedding())
    return batch.add(board->worksAfter(edit, target), classIndex);
  size_t result = 0;
  int *shards = nullptr;
  double *row = batch.addRow(classIndex, result, shards);
  *shards = sumAfter(*board, edit, target, row);
  return result;
}

static void takeLoads(const Board &board, const Edit &edit,
                      LoadChange &change) {
  change.device = board.piece(edit.piece).device;
  change.target = edit.target;
  change.load = board.loadAfter(edit, false);
  change.targetLoad = change.device == change.target
                          ? change.load
                          : board.loadAfter(edit, true);
}

void EditBatch::judge(const Board &board, const Edit &edit,
                      LoadChange &change) {
  const SearchContext &context = board.context();
  const SumEmbedding &embedding = *context.model.sumEmbedding();
  takeLoads(board, edit, change);
  std::array<double, kSmallEmbedding> row;
  auto ask = [&](bool target, int device) {
    int shards = sumAfter(board, edit, target, row.data());
    return embedding.head(std::span(row).first(board.sumOf(device).size()),
                          shards, context.classOf(device));
  };
  change.load.compute = ask(false, change.device);
  change.targetLoad.compute = change.device == change.target
                                  ? change.load.compute
                                  : ask(true, change.target);
}

void EditBatch::add(const Edit &edit) {
  LoadChange &change = changes.emplace_back();
  takeLoads(*board, edit, change);
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
