//===- Proposals.cpp - Random edits to judge ------------------------------===//

#include "Proposals.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// Probabilities of the choices that draw an edit.
constexpr double kCriticalShare = 0.4;
constexpr double kSlowShare = 0.3;
constexpr double kMoveShare = 0.3;
constexpr double kSwapShare = 0.35;
constexpr double kSplitShare = 0.1;
constexpr double kPlainSplitShare = 0.5;
constexpr double kJoinShare = 0.25;
constexpr double kRowShare = 0.3;
/// Pieces drawn, at most, until one is movable.
constexpr int kTries = 8;
/// Row cuts of a table lie at multiples of its rows / this number.
constexpr int64_t kRowSteps = 64;
/// How far one edit moves the border between two pieces, in multiples.
constexpr int kMaxBorderSteps = 4;

} // namespace

int64_t neuroshard::rowStep(const Region &region) {
  return std::max<int64_t>(1, region.whole->shards.front().rows() / kRowSteps);
}

int Proposals::drawPiece(const std::vector<int> &critical) {
  double r = random.real();
  int device = -1;
  if (r < kCriticalShare && !critical.empty()) {
    device = critical[static_cast<size_t>(random.below(critical.size()))];
  } else if (r < kCriticalShare + kSlowShare) {
    size_t devices = static_cast<size_t>(board.context().deviceCount);
    device = random.below(devices);
    int other = random.below(devices);
    if (board.loadOf(other).compute.total() >
        board.loadOf(device).compute.total())
      device = other;
  }
  for (int i = 0; i < kTries; ++i) {
    int piece = -1;
    if (device < 0) {
      piece = random.below(static_cast<size_t>(board.pieceSlots()));
    } else {
      const std::vector<int> &list = board.piecesOn(device);
      if (list.empty())
        return -1;
      piece = list[static_cast<size_t>(random.below(list.size()))];
    }
    if (board.piece(piece).movable)
      return piece;
  }
  return -1;
}

/// Draws two devices; usually takes the faster one.
int Proposals::drawTarget(int device) {
  size_t others = static_cast<size_t>(board.context().deviceCount - 1);
  auto draw = [&] {
    int drawn = random.below(others);
    return drawn >= device ? drawn + 1 : drawn;
  };
  int first = draw();
  double r = random.real();
  if (r < 0.3)
    return first;
  int second = draw();
  const DeviceLoad &a = board.loadOf(first), &b = board.loadOf(second);
  bool better =
      r < 0.5 ? b.dims < a.dims : b.compute.total() < a.compute.total();
  return better ? second : first;
}

int Proposals::drawSibling(int index) {
  const Region &region = board.regionOf(board.piece(index));
  const std::vector<int> &own =
      region.bands[static_cast<size_t>(board.piece(index).band)];
  const std::vector<int> *band = &own;
  if (own.size() == 1)
    band =
        &region.bands[static_cast<size_t>(random.below(region.bands.size()))];
  return (*band)[static_cast<size_t>(random.below(band->size()))];
}

Edit Proposals::drawSplit(int index) {
  const BoardPiece &piece = board.piece(index);
  const Region &region = board.regionOf(piece);
  if (region.rigid)
    return {};
  bool rows =
      region.mayCutRows && (!region.mayCutColumns || random.real() < kRowShare);
  int64_t step = rows ? rowStep(region) : kColumnAlignment;
  int64_t steps = ((rows ? piece.rows : piece.width) + step - 1) / step;
  if (steps < 2)
    return {};
  int64_t stays = random.real() < 0.5
                      ? steps / 2
                      : 1 + random.below(static_cast<size_t>(steps - 1));
  int target = drawTarget(piece.device);
  const std::vector<int> &there = board.piecesOn(target);
  if (there.empty() || random.real() < kPlainSplitShare)
    return board.split(index, target, rows, stays * step);
  return board.exchange(index,
                        there[static_cast<size_t>(random.below(there.size()))],
                        rows, stays * step);
}

Edit Proposals::drawSiblingStep(int index, int sibling) {
  const BoardPiece &a = board.piece(index), &b = board.piece(sibling);
  if (a.device == b.device || random.real() < kJoinShare)
    return board.join(index, sibling);
  bool rows = a.band != b.band;
  int64_t step = rows ? rowStep(board.regionOf(a)) : kColumnAlignment;
  int64_t size = rows ? a.rows : a.width;
  int64_t both = size + (rows ? b.rows : b.width);
  int64_t by = step * (1 + random.below(kMaxBorderSteps));
  if (random.real() < 0.15)
    by = step * random.below(static_cast<size_t>(both / step + 1));
  // Usually from the slower device to the faster one.
  bool slower = board.loadOf(a.device).compute.total() >
                board.loadOf(b.device).compute.total();
  if (slower == (random.real() < 0.75))
    by = -by;
  return board.rewidth(index, sibling, size + by);
}

Edit Proposals::draw(const std::vector<int> &critical) {
  int index = drawPiece(critical);
  if (index < 0)
    return {};
  const BoardPiece &piece = board.piece(index);
  const Region &region = board.regionOf(piece);
  double r = random.real();
  if (region.pieces > 1 && !region.rigid &&
      r > kMoveShare + kSwapShare + kSplitShare) {
    int sibling = drawSibling(index);
    if (sibling != index)
      return drawSiblingStep(index, sibling);
  }
  if (board.context().deviceCount < 2)
    return {};
  if (r < kSplitShare)
    return drawSplit(index);
  int target = drawTarget(piece.device);
  const std::vector<int> &there = board.piecesOn(target);
  if (r < kSplitShare + kMoveShare || there.empty())
    return board.move(index, target);
  return board.swap(index,
                    there[static_cast<size_t>(random.below(there.size()))]);
}
