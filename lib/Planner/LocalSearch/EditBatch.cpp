//===- EditBatch.cpp - Edits judged together in one model call ------------===//

#include "EditBatch.h"

#include <array>

using namespace neuroshard;

void EditBatch::clear() {
  batch.clear();
  edits.clear();
  changes.clear();
  results.clear();
}

/// Writes the sum of the embeddings on one of the two devices after the edit;
/// returns the number of shards on it.
static int sumAfter(const Board &board, const Edit &edit, bool target,
                    int period, double *row) {
  const BoardPiece &first = board.piece(edit.piece);
  int device = target ? edit.target : first.device;
  bool same = first.device == edit.target;
  std::span<const double> sum = board.totals().in(period).embeddingOf(device);
  size_t offset = board.context().classIndexOf(device) * sum.size();
  int shards = board.totals().shardsOn(device);
  for (size_t k = 0; k < sum.size(); ++k)
    row[k] = sum[k];
  auto leaves = [&](const ShardFacts *facts) {
    shards -= facts->shardCount();
    const double *one = facts->in(period).embedding.data() + offset;
    for (size_t k = 0; k < sum.size(); ++k)
      row[k] -= one[k];
  };
  auto comes = [&](const ShardFacts *facts) {
    if (!facts)
      return;
    shards += facts->shardCount();
    const double *one = facts->in(period).embedding.data() + offset;
    for (size_t k = 0; k < sum.size(); ++k)
      row[k] += one[k];
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

size_t EditBatch::request(const Edit &edit, bool target, int period) {
  const SearchContext &context = board->context();
  size_t classIndex = context.classIndexOf(
      target ? edit.target : board->piece(edit.piece).device);
  if (!context.model.sumEmbedding())
    return batch.add(board->worksAfter(edit, target, period), classIndex);
  size_t result = 0;
  int *shards = nullptr;
  double *row = batch.addRow(classIndex, result, shards);
  *shards = sumAfter(*board, edit, target, period, row);
  return result;
}

static void takeLoads(const Board &board, const Edit &edit, int period,
                      LoadChange &change) {
  change.device = board.piece(edit.piece).device;
  change.target = edit.target;
  change.load = board.loadAfter(edit, false, period);
  change.targetLoad = change.device == change.target
                          ? change.load
                          : board.loadAfter(edit, true, period);
}

/// Loads of the summary and of all periods, without compute.
static void takeLoads(const Board &board, const Edit &edit,
                      LoadChange &change) {
  takeLoads(board, edit, kSummary, change);
  change.periods.resize(board.context().periods.size());
  for (size_t p = 0; p < change.periods.size(); ++p)
    takeLoads(board, edit, static_cast<int>(p), change.periods[p]);
}

static void takeMeanCompute(const Board &board, LoadChange &change) {
  change.load.compute = change.targetLoad.compute = {};
  for (size_t p = 0; p < change.periods.size(); ++p) {
    double share = board.context().shares[p];
    addShare(change.load.compute, change.periods[p].load.compute, share);
    addShare(change.targetLoad.compute, change.periods[p].targetLoad.compute,
             share);
  }
}

static void askCompute(const Board &board, const Edit &edit, int period,
                       LoadChange &change) {
  const SearchContext &context = board.context();
  const SumEmbedding &embedding = *context.model.sumEmbedding();
  std::array<double, kSmallEmbedding> row;
  size_t size = static_cast<size_t>(embedding.size());
  auto ask = [&](bool target, int device) {
    int shards = sumAfter(board, edit, target, period, row.data());
    return embedding.head(std::span(row).first(size), shards,
                          context.classOf(device));
  };
  change.load.compute = ask(false, change.device);
  change.targetLoad.compute = change.device == change.target
                                  ? change.load.compute
                                  : ask(true, change.target);
}

void EditBatch::judge(const Board &board, const Edit &edit,
                      LoadChange &change) {
  takeLoads(board, edit, change);
  if (change.periods.empty())
    return askCompute(board, edit, kSummary, change);
  for (size_t p = 0; p < change.periods.size(); ++p)
    askCompute(board, edit, static_cast<int>(p), change.periods[p]);
  takeMeanCompute(board, change);
}

void EditBatch::add(const Edit &edit) {
  LoadChange &change = changes.emplace_back();
  takeLoads(*board, edit, change);
  auto ask = [&](int period) {
    size_t here = request(edit, false, period);
    size_t there =
        change.device == change.target ? here : request(edit, true, period);
    results.emplace_back(here, there);
  };
  if (change.periods.empty())
    ask(kSummary);
  for (size_t p = 0; p < change.periods.size(); ++p)
    ask(static_cast<int>(p));
  edits.push_back(edit);
}

void EditBatch::run() {
  batch.run();
  size_t next = 0;
  auto take = [&](LoadChange &change) {
    auto [here, there] = results[next++];
    change.load.compute = batch[here];
    change.targetLoad.compute = batch[there];
  };
  for (LoadChange &change : changes) {
    if (change.periods.empty()) {
      take(change);
      continue;
    }
    for (LoadChange &period : change.periods)
      take(period);
    takeMeanCompute(*board, change);
  }
}
