//===- MovedBytes.cpp - Cost of bytes moved since a previous plan ---------===//

#include "MovedBytes.h"

#include "Replan/Migration.h"
#include "neuroshard/Model/StoredBytes.h"

#include <algorithm>

using namespace neuroshard;

MovedBytes::MovedBytes(const Board &board, const ShardingPlan &previous,
                       double msPerByte)
    : board(board), msPerByte(msPerByte) {
  ShardsOfTable before = shardsByTable(previous);
  for (const Table &table : board.context().problem.tables)
    isNew.push_back(!before.contains(table.name));
  for (int device = 0; device < board.context().deviceCount; ++device) {
    Changes held;
    for (int piece : board.piecesOn(device))
      add(held, device, board.piece(piece).facts, 1);
    for (const auto &[place, count] : held)
      bytes[place] = {count, count};
  }
}

/// Adds (sign 1) or takes away (-1) the bytes of these shards on a device.
void MovedBytes::add(Changes &changes, int device, const ShardFacts *facts,
                     double sign) const {
  if (!facts)
    return;
  for (const ShardWork &work : facts->works) {
    if (isNew[static_cast<size_t>(work.table)])
      continue;
    double stored = storedBytes(board.context().table(work.table), work.rows,
                                work.width, work.width);
    Place place(device, work.table);
    auto found =
        std::find_if(changes.begin(), changes.end(),
                     [&](const auto &change) { return change.first == place; });
    if (found == changes.end())
      changes.emplace_back(place, sign * stored);
    else
      found->second += sign * stored;
  }
}

MovedBytes::Changes MovedBytes::changesOf(const Edit &edit) const {
  Changes changes;
  const BoardPiece &piece = board.piece(edit.piece);
  add(changes, piece.device, piece.facts, -1);
  add(changes, piece.device, edit.after, 1);
  add(changes, piece.device, edit.extra, 1);
  if (edit.other >= 0)
    add(changes, edit.target, board.piece(edit.other).facts, -1);
  add(changes, edit.target, edit.otherAfter, 1);
  return changes;
}

MovedBytes::Bytes MovedBytes::at(const Place &place) const {
  auto found = bytes.find(place);
  return found == bytes.end() ? Bytes() : found->second;
}

double MovedBytes::costAfter(const Edit &edit) const {
  double after = moved;
  for (const auto &[place, change] : changesOf(edit)) {
    Bytes here = at(place);
    after += std::max(0.0, here.now + change - here.before) -
             std::max(0.0, here.now - here.before);
  }
  return after * msPerByte;
}

void MovedBytes::apply(const Edit &edit) {
  for (const auto &[place, change] : changesOf(edit)) {
    Bytes &here = bytes[place];
    moved -= std::max(0.0, here.now - here.before);
    here.now += change;
    moved += std::max(0.0, here.now - here.before);
  }
}
