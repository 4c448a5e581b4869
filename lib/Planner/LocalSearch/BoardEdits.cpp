//===- BoardEdits.cpp - Edits of the local search: make and apply ---------===//

#include "Board.h"

#include "Units/UnitOperations.h"

#include <algorithm>

using namespace neuroshard;

Edit Board::move(int index, int target) const {
  const BoardPiece &moved = piece(index);
  if (!moved.movable || moved.device == target)
    return {};
  Edit edit;
  edit.kind = Edit::Move;
  edit.piece = index;
  edit.target = target;
  edit.otherAfter = moved.facts;
  return edit;
}

Edit Board::swap(int index, int other) const {
  const BoardPiece &a = piece(index), &b = piece(other);
  if (!a.movable || !b.movable || a.device == b.device)
    return {};
  Edit edit;
  edit.kind = Edit::Swap;
  edit.piece = index;
  edit.other = other;
  edit.target = b.device;
  edit.after = b.facts;
  edit.otherAfter = a.facts;
  return edit;
}

Edit Board::split(int index, int target, bool rows, int64_t stays) {
  const BoardPiece &whole = piece(index);
  const Region &region = regionOf(whole);
  if (!whole.movable || region.rigid || whole.device == target || stays < 1)
    return {};
  int64_t goes = (rows ? whole.rows : whole.width) - stays;
  if (goes < 1)
    return {};
  size_t inBand = region.bands[static_cast<size_t>(whole.band)].size();
  if (rows && (!region.mayCutRows || inBand > 1))
    return {};
  if (!rows && (!region.mayCutColumns || stays % kColumnAlignment != 0 ||
                std::min(stays, goes) < region.minWidth ||
                !context().mayMixWidths(region.whole->tables.front(),
                                        whole.rows, whole.width)))
    return {};
  // A table cut by rows and columns is of another kind.
  if ((rows ? inBand > 1 : region.bands.size() > 1) &&
      !context()
           .rulesOf(region.whole->tables.front())
           .allows(ShardingKind::RowColumn))
    return {};
  Edit edit;
  edit.kind = Edit::Split;
  edit.piece = index;
  edit.target = target;
  edit.rows = rows;
  edit.size = stays;
  int64_t height = rows ? stays : whole.rows;
  edit.after = factsOf(whole.region, height, rows ? whole.width : stays);
  edit.otherAfter = factsOf(whole.region, rows ? goes : whole.rows,
                            rows ? whole.width : goes);
  return edit;
}

Edit Board::exchange(int index, int other, bool rows, int64_t stays) {
  const BoardPiece &back = piece(other);
  if (!back.movable || back.region == piece(index).region)
    return {};
  Edit edit = split(index, back.device, rows, stays);
  if (edit.kind == Edit::None)
    return edit;
  edit.kind = Edit::Exchange;
  edit.other = other;
  edit.extra = back.facts;
  return edit;
}

Edit Board::join(int index, int other) {
  const BoardPiece &a = piece(index), &b = piece(other);
  if (a.region != b.region || index == other || !a.movable || !b.movable)
    return {};
  const Region &region = regionOf(a);
  if (region.rigid || !region.mayJoin)
    return {};
  // After the join the table must be of an allowed kind.
  const TableRules &rules = context().rulesOf(region.whole->tables.front());
  bool oneWay = region.bands.size() == 1 ||
                static_cast<int>(region.bands.size()) == region.pieces;
  if (rules.kindsListed &&
      (!oneWay ||
       (region.pieces == 2 && !rules.allows(ShardingKind::TableWise))))
    return {};
  Edit edit;
  edit.kind = Edit::Join;
  edit.piece = index;
  edit.other = other;
  edit.target = b.device;
  if (a.band == b.band) {
    if (!context().mayMixWidths(region.whole->tables.front(), a.rows,
                                a.width + b.width))
      return {};
    edit.after = factsOf(a.region, a.rows, a.width + b.width);
    return edit;
  }
  auto alone = [&](const BoardPiece &piece) {
    return region.bands[static_cast<size_t>(piece.band)].size() == 1;
  };
  if (!alone(a) || !alone(b) ||
      !mayHaveRows(context(), region.whole->tables.front(), a.rows + b.rows))
    return {};
  edit.rows = true;
  edit.after = factsOf(a.region, a.rows + b.rows, a.width);
  return edit;
}

Edit Board::rewidth(int index, int other, int64_t size) {
  const BoardPiece &a = piece(index), &b = piece(other);
  if (a.region != b.region || a.device == b.device || !a.movable || !b.movable)
    return {};
  const Region &region = regionOf(a);
  if (region.rigid)
    return {};
  Edit edit;
  edit.kind = Edit::Rewidth;
  edit.piece = index;
  edit.other = other;
  edit.target = b.device;
  edit.size = size;
  if (a.band == b.band) {
    int64_t rest = a.width + b.width - size;
    if (size == a.width || (size - a.width) % kColumnAlignment != 0 ||
        std::min(size, rest) < std::max<int64_t>(1, region.minWidth))
      return {};
    edit.after = factsOf(a.region, a.rows, size);
    edit.otherAfter = factsOf(a.region, a.rows, rest);
    return edit;
  }
  int64_t rest = a.rows + b.rows - size;
  if (region.bands[static_cast<size_t>(a.band)].size() > 1 ||
      region.bands[static_cast<size_t>(b.band)].size() > 1 || size < 1 ||
      rest < 1 || size == a.rows || !region.mayCutRows ||
      !mayHaveRows(context(), region.whole->tables.front(),
                   std::max(size, rest)))
    return {};
  edit.rows = true;
  edit.after = factsOf(a.region, size, a.width);
  edit.otherAfter = factsOf(a.region, rest, a.width);
  return edit;
}

bool Board::allows(int device, const BoardPiece &piece, int leaving) const {
  const Unit &whole = *regionOf(piece).whole;
  if (!whole.restricted)
    return true;
  return allowsDevice(context(), whole, device) &&
         sums.separation().admits(device, *piece.facts,
                                  leaving < 0 ? nullptr
                                              : this->piece(leaving).facts);
}

/// Changes when a table gets its first column cut or loses its last.
int64_t Board::permuteBytesAfter(const Edit &edit) const {
  bool columns = (edit.kind == Edit::Split || edit.kind == Edit::Exchange ||
                  edit.kind == Edit::Join) &&
                 !edit.rows;
  if (!columns)
    return cuts.permuteBytes();
  const ShardWork &work = piece(edit.piece).facts->works.front();
  auto narrow = [&](const ShardFacts *facts) {
    return facts && facts->works.front().width != work.tableDim ? 1 : 0;
  };
  int change = narrow(edit.after) + narrow(edit.otherAfter) -
               narrow(piece(edit.piece).facts);
  if (edit.kind == Edit::Join)
    change -= narrow(piece(edit.other).facts);
  return cuts.permuteBytesAfter(work.table, change);
}

bool Board::hostsHold(int device, Footprint here, int target,
                      Footprint there) const {
  there -= sums.memoryOf(target);
  if (device == target)
    return sums.hostHolds(target, there);
  here -= sums.memoryOf(device);
  return sums.hostsHold(device, here, target, there);
}

bool Board::fits(const Edit &edit) const {
  const BoardPiece &first = piece(edit.piece);
  bool same = first.device == edit.target;
  Footprint here = sums.memoryOf(first.device);
  here -= first.facts->footprint;
  if (edit.after)
    here += edit.after->footprint;
  if (edit.extra)
    here += edit.extra->footprint;
  Footprint there = same ? here : sums.memoryOf(edit.target);
  if (edit.other >= 0)
    there -= piece(edit.other).facts->footprint;
  if (edit.otherAfter)
    there += edit.otherAfter->footprint;
  if (!hostsHold(first.device, here, edit.target, there))
    return false;
  int64_t permute = permuteBytesAfter(edit);
  auto isOver = [&](int device, const Footprint &memory) {
    return context().peakOf(memory) + permute > context().memoryOf(device);
  };
  if (isOver(edit.target, there) || (!same && isOver(first.device, here)))
    return false;
  if (permute > cuts.permuteBytes())
    for (int device = 0; device < context().deviceCount; ++device)
      if (device != first.device && device != edit.target &&
          isOver(device, sums.memoryOf(device)))
        return false;
  // Part of a piece that is exchanged stays on its device.
  int leaving = edit.kind == Edit::Swap ? edit.piece : -1;
  if (edit.kind == Edit::Swap || edit.kind == Edit::Exchange)
    return allows(edit.target, first, edit.other) &&
           allows(first.device, piece(edit.other), leaving);
  return edit.kind == Edit::Join || edit.kind == Edit::Rewidth ||
         allows(edit.target, first, -1);
}

DeviceLoad Board::loadAfter(const Edit &edit, bool target, int period) const {
  const BoardPiece &first = piece(edit.piece);
  bool same = first.device == edit.target;
  DeviceLoad load = sums.in(period).loadOf(target ? edit.target : first.device);
  auto change = [&](const ShardFacts &facts, double sign) {
    addLoads(load, facts.in(period).load, sign);
  };
  if (!target || same) {
    change(*first.facts, -1);
    if (edit.after)
      change(*edit.after, 1);
    if (edit.extra)
      change(*edit.extra, 1);
  }
  if (target || same) {
    if (edit.other >= 0)
      change(*piece(edit.other).facts, -1);
    if (edit.otherAfter)
      change(*edit.otherAfter, 1);
  }
  return load;
}

std::vector<const ShardWork *> Board::worksAfter(const Edit &edit, bool target,
                                                 int period) const {
  const BoardPiece &first = piece(edit.piece);
  bool same = first.device == edit.target;
  std::vector<const ShardWork *> works;
  auto add = [&](const std::vector<ShardWork> &more) {
    for (const ShardWork &work : more)
      works.push_back(&work);
  };
  for (const UnitPtr &unit : everywhere)
    add(unit->in(period).works);
  for (int index : piecesOn(target ? edit.target : first.device))
    if (index != edit.piece && index != edit.other)
      add(piece(index).facts->in(period).works);
  if ((!target || same) && edit.after)
    add(edit.after->in(period).works);
  if (!target && edit.extra)
    add(edit.extra->in(period).works);
  if ((target || same) && edit.otherAfter)
    add(edit.otherAfter->in(period).works);
  return works;
}

void Board::setFacts(int index, int64_t rows, int64_t width,
                     const ShardFacts *facts) {
  BoardPiece &changed = pieces[static_cast<size_t>(index)];
  sums.remove(changed.device, *changed.facts);
  cuts.remove(*changed.facts);
  changed.rows = rows;
  changed.width = width;
  changed.facts = facts;
  sums.add(changed.device, *facts);
  cuts.add(*facts);
}

void Board::relocate(int index, int device) {
  sums.remove(piece(index).device, *piece(index).facts);
  relist(index, device);
  sums.add(device, *piece(index).facts);
}

void Board::apply(const Edit &edit, const LoadChange &change) {
  int device = piece(edit.piece).device;
  auto resize = [&](int index, int64_t size, const ShardFacts *facts) {
    const BoardPiece &old = piece(index);
    setFacts(index, edit.rows ? size : old.rows, edit.rows ? old.width : size,
             facts);
  };
  auto sizeOf = [&](int index) {
    return edit.rows ? piece(index).rows : piece(index).width;
  };
  switch (edit.kind) {
  case Edit::None:
    return;
  case Edit::Move:
    relocate(edit.piece, edit.target);
    break;
  case Edit::Swap:
    relocate(edit.piece, edit.target);
    relocate(edit.other, device);
    break;
  case Edit::Exchange:
  case Edit::Split: {
    if (edit.kind == Edit::Exchange)
      relocate(edit.other, device);
    BoardPiece part = piece(edit.piece);
    int64_t goes = sizeOf(edit.piece) - edit.size;
    resize(edit.piece, edit.size, edit.after);
    (edit.rows ? part.rows : part.width) = goes;
    part.facts = edit.otherAfter;
    part.device = edit.target;
    Region &region = regions[static_cast<size_t>(part.region)];
    if (edit.rows) {
      part.band = static_cast<int>(region.bands.size());
      region.bands.emplace_back();
    }
    int index = addPiece(part);
    region.bands[static_cast<size_t>(part.band)].push_back(index);
    sums.add(edit.target, *part.facts);
    cuts.add(*part.facts);
    break;
  }
  case Edit::Join: {
    int64_t size = sizeOf(edit.piece) + sizeOf(edit.other);
    sums.remove(edit.target, *piece(edit.other).facts);
    cuts.remove(*piece(edit.other).facts);
    removePiece(edit.other);
    resize(edit.piece, size, edit.after);
    break;
  }
  case Edit::Rewidth: {
    int64_t rest = sizeOf(edit.piece) + sizeOf(edit.other) - edit.size;
    resize(edit.piece, edit.size, edit.after);
    resize(edit.other, rest, edit.otherAfter);
    break;
  }
  }
  auto follow = [&](int period, const LoadChange &after) {
    sums.in(period).setCompute(device, after.load.compute);
    sums.in(period).setCompute(edit.target, after.targetLoad.compute);
  };
  follow(kSummary, change);
  for (size_t p = 0; p < change.periods.size(); ++p)
    follow(static_cast<int>(p), change.periods[p]);
}
