//===- Board.cpp - Pieces of tables on devices, by size alone -------------===//

#include "Board.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace neuroshard;

namespace {

bool contains(const Shard &outer, const Shard &inner) {
  return outer.rowBegin <= inner.rowBegin && inner.rowEnd <= outer.rowEnd &&
         outer.colBegin <= inner.colBegin && inner.colEnd <= outer.colEnd;
}

void addLoad(DeviceLoad &load, const DeviceLoad &other, double sign) {
  load.dims += sign * other.dims;
  load.inputBytes += sign * other.inputBytes;
  load.forwardBytes += sign * other.forwardBytes;
  load.backwardBytes += sign * other.backwardBytes;
}

} // namespace

Board::Board(const SearchContext &context, const std::vector<UnitPtr> &wholes,
             const SearchState &placed)
    : owner(&context), lists(static_cast<size_t>(context.deviceCount)),
      loads(static_cast<size_t>(context.deviceCount)),
      footprints(static_cast<size_t>(context.deviceCount)),
      shardCounts(static_cast<size_t>(context.deviceCount)),
      columnPieces(context.problem.tables.size()) {
  if (const SumEmbedding *embedding = context.model.sumEmbedding())
    sumSize = static_cast<size_t>(embedding->size());
  sums.resize(sumSize * static_cast<size_t>(context.deviceCount));
  std::map<int, std::vector<size_t>> wholesOfTable;
  for (size_t i = 0; i < wholes.size(); ++i)
    if (wholes[i]->forcedDevice == -1)
      wholesOfTable[wholes[i]->tables.front()].push_back(i);
  std::vector<std::vector<size_t>> unitsOfWhole(wholes.size());
  for (size_t i = 0; i < placed.units().size(); ++i) {
    const UnitPtr &unit = placed.units()[i];
    if (unit->forcedDevice == Unit::kEverywhere) {
      everywhere.push_back(unit);
      continue;
    }
    if (unit->forcedDevice >= 0) {
      addRegion(unit, placed, {i});
      continue;
    }
    for (size_t whole : wholesOfTable[unit->tables.front()])
      if (contains(wholes[whole]->shards.front(), unit->shards.front()))
        unitsOfWhole[whole].push_back(i);
  }
  for (size_t i = 0; i < wholes.size(); ++i)
    if (wholes[i]->forcedDevice == -1)
      addRegion(wholes[i], placed, unitsOfWhole[i]);
  for (int device = 0; device < context.deviceCount; ++device) {
    baseFootprints.push_back(footprintOf(context.baseOf(device)));
    loads[static_cast<size_t>(device)].compute = placed.loadOf(device).compute;
  }
  refresh();
}

void Board::addRegion(const UnitPtr &whole, const SearchState &placed,
                      const std::vector<size_t> &units) {
  int index = static_cast<int>(regions.size());
  Region &region = regions.emplace_back();
  region.whole = whole;
  const Table &table = context().table(whole->tables.front());
  const TableRules &rules = context().rulesOf(whole->tables.front());
  const Shard &shard = whole->shards.front();
  bool wholeRows = shard.rows() == table.rows;
  bool wholeWidth = shard.width() == table.dim;
  region.rigid = whole->forcedDevice != -1 || whole->shards.size() > 1 ||
                 !layOut(index, placed, units);
  region.minWidth = std::min(rules.minWidth, table.dim);
  region.mayCutColumns = rules.allows(wholeRows ? ShardingKind::ColumnWise
                                                : ShardingKind::RowColumn);
  // Row blocks of other targets have one form, which is not found by cutting.
  region.mayCutRows = context().problem.target == Target::Native &&
                      rules.allows(wholeWidth ? ShardingKind::RowWise
                                              : ShardingKind::RowColumn);
  region.mayJoin = !rules.kindsListed || (wholeRows && wholeWidth);
  if (!region.rigid)
    return;
  for (size_t unit : units) {
    Piece piece;
    piece.region = index;
    piece.device = placed.deviceOf(unit);
    piece.unit = placed.units()[unit];
    piece.movable = piece.unit->forcedDevice == -1;
    piece.rows = piece.unit->shards.front().rows();
    piece.width = piece.unit->shards.front().width();
    piece.facts = composite(*piece.unit);
    addPiece(std::move(piece));
  }
}

/// Reads the pieces as bands of rows; false when they are something else.
bool Board::layOut(int index, const SearchState &placed,
                   const std::vector<size_t> &units) {
  const Shard &whole =
      regions[static_cast<size_t>(index)].whole->shards.front();
  std::vector<std::pair<Shard, int>> shards;
  for (size_t unit : units)
    shards.emplace_back(placed.units()[unit]->shards.front(),
                        placed.deviceOf(unit));
  std::sort(shards.begin(), shards.end(), [](const auto &a, const auto &b) {
    return std::tie(a.first.rowBegin, a.first.colBegin) <
           std::tie(b.first.rowBegin, b.first.colBegin);
  });
  int64_t row = whole.rowBegin, column = whole.colBegin;
  for (const auto &[shard, device] : shards) {
    if (shard.rowBegin != row || shard.colBegin != column)
      return false;
    column = shard.colEnd;
    if (column < whole.colEnd)
      continue;
    row = shard.rowEnd;
    column = whole.colBegin;
  }
  if (row != whole.rowEnd || column != whole.colBegin)
    return false;
  // Pieces of a band must also end at the same row.
  for (size_t i = 1; i < shards.size(); ++i)
    if (shards[i].first.rowBegin == shards[i - 1].first.rowBegin &&
        shards[i].first.rowEnd != shards[i - 1].first.rowEnd)
      return false;
  Region &region = regions[static_cast<size_t>(index)];
  for (const auto &[shard, device] : shards) {
    if (shard.colBegin == whole.colBegin)
      region.bands.emplace_back();
    Piece piece;
    piece.region = index;
    piece.band = static_cast<int>(region.bands.size()) - 1;
    piece.device = device;
    piece.movable = true;
    piece.rows = shard.rows();
    piece.width = shard.width();
    piece.facts = factsOf(index, piece.rows, piece.width);
    region.bands.back().push_back(addPiece(std::move(piece)));
  }
  return true;
}

const PieceFacts *Board::composite(const Unit &unit) {
  PieceFacts &facts = this->facts->composites.emplace_back();
  facts.works = unit.works;
  facts.memory = unit.memory;
  facts.footprint = unit.footprint;
  facts.embedding = unit.embedding;
  facts.load = unit.load;
  return &facts;
}

const PieceFacts *Board::factsOf(int region, int64_t rows, int64_t width) {
  const Unit &whole = *regions[static_cast<size_t>(region)].whole;
  int table = whole.tables.front();
  auto [entry, inserted] =
      this->facts->bySize.try_emplace({table, rows, width}, nullptr);
  if (!inserted)
    return entry->second;
  Shard shard = whole.shards.front();
  shard.rowEnd = shard.rowBegin + rows;
  shard.colEnd = shard.colBegin + width;
  // The store keeps them alive.
  entry->second = neuroshard::factsOf(context(), table, shard).get();
  return entry->second;
}

int Board::addPiece(Piece piece) {
  int index = static_cast<int>(pieces.size());
  if (freeSlots.empty()) {
    pieces.emplace_back();
  } else {
    index = freeSlots.back();
    freeSlots.pop_back();
  }
  std::vector<int> &list = lists[static_cast<size_t>(piece.device)];
  piece.position = list.size();
  list.push_back(index);
  ++regions[static_cast<size_t>(piece.region)].pieces;
  ++used;
  pieces[static_cast<size_t>(index)] = std::move(piece);
  return index;
}

void Board::removePiece(int index) {
  Piece &gone = pieces[static_cast<size_t>(index)];
  std::vector<int> &list = lists[static_cast<size_t>(gone.device)];
  list[gone.position] = list.back();
  pieces[static_cast<size_t>(list.back())].position = gone.position;
  list.pop_back();
  Region &region = regions[static_cast<size_t>(gone.region)];
  --region.pieces;
  std::vector<int> &band = region.bands[static_cast<size_t>(gone.band)];
  band.erase(std::find(band.begin(), band.end(), index));
  if (band.empty()) {
    int last = static_cast<int>(region.bands.size()) - 1;
    if (gone.band != last) {
      band = std::move(region.bands.back());
      for (int piece : band)
        pieces[static_cast<size_t>(piece)].band = gone.band;
    }
    region.bands.pop_back();
  }
  gone.device = -1;
  gone.movable = false;
  freeSlots.push_back(index);
  --used;
}

void Board::relist(int index, int device) {
  Piece &moved = pieces[static_cast<size_t>(index)];
  std::vector<int> &from = lists[static_cast<size_t>(moved.device)];
  from[moved.position] = from.back();
  pieces[static_cast<size_t>(from.back())].position = moved.position;
  from.pop_back();
  std::vector<int> &to = lists[static_cast<size_t>(device)];
  moved.device = device;
  moved.position = to.size();
  to.push_back(index);
}

void Board::account(int device, const PieceFacts &facts, int sign) {
  size_t d = static_cast<size_t>(device);
  if (sign > 0)
    footprints[d] += facts.footprint;
  else
    footprints[d] -= facts.footprint;
  addLoad(loads[d], facts.load, sign);
  shardCounts[d] += sign * static_cast<int>(facts.works.size());
  double *sum = sums.data() + d * sumSize;
  const double *one =
      facts.embedding.data() + context().classIndexOf(device) * sumSize;
  for (size_t k = 0; k < sumSize; ++k)
    sum[k] += sign * one[k];
}

void Board::countColumns(const Piece &piece, int sign) {
  for (const ShardWork &work : piece.facts->works) {
    if (work.width == work.tableDim)
      continue;
    int &count = columnPieces[static_cast<size_t>(work.table)];
    if (count == (sign > 0 ? 0 : 1))
      permuteBytes += sign * columnPermuteBytes(
                                 context().problem, context().table(work.table),
                                 context().featuresOf(work.table));
    count += sign;
  }
}

void Board::refresh() {
  std::fill(sums.begin(), sums.end(), 0);
  std::fill(columnPieces.begin(), columnPieces.end(), 0);
  permuteBytes = 0;
  for (int device = 0; device < context().deviceCount; ++device) {
    size_t d = static_cast<size_t>(device);
    ComputeMs compute = loads[d].compute;
    loads[d] = {};
    loads[d].compute = compute;
    footprints[d] = baseFootprints[d];
    shardCounts[d] = 0;
    auto add = [&](const PieceFacts &facts) { account(device, facts, 1); };
    for (const UnitPtr &unit : everywhere) {
      PieceFacts facts;
      facts.works = unit->works;
      facts.footprint = unit->footprint;
      facts.embedding = unit->embedding;
      facts.load = unit->load;
      add(facts);
    }
    for (int index : lists[d]) {
      add(*piece(index).facts);
      countColumns(piece(index), 1);
    }
  }
}

Edit Board::move(int index, int target) const {
  const Piece &moved = piece(index);
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
  const Piece &a = piece(index), &b = piece(other);
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
  const Piece &whole = piece(index);
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
                std::min(stays, goes) < region.minWidth))
    return {};
  // Rows and columns cut together are a kind of their own.
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
  const Piece &back = piece(other);
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
  const Piece &a = piece(index), &b = piece(other);
  if (a.region != b.region || index == other || !a.movable || !b.movable)
    return {};
  const Region &region = regionOf(a);
  if (region.rigid || !region.mayJoin)
    return {};
  // Joined, the table must still be of a kind that is allowed.
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
    edit.after = factsOf(a.region, a.rows, a.width + b.width);
    return edit;
  }
  auto alone = [&](const Piece &piece) {
    return region.bands[static_cast<size_t>(piece.band)].size() == 1;
  };
  if (!alone(a) || !alone(b))
    return {};
  edit.rows = true;
  edit.after = factsOf(a.region, a.rows + b.rows, a.width);
  return edit;
}

Edit Board::rewidth(int index, int other, int64_t size) {
  const Piece &a = piece(index), &b = piece(other);
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
      rest < 1 || size == a.rows || !region.mayCutRows)
    return {};
  edit.rows = true;
  edit.after = factsOf(a.region, size, a.width);
  edit.otherAfter = factsOf(a.region, rest, a.width);
  return edit;
}

bool Board::holdsOther(int device, int table, int set, int leaving) const {
  const std::vector<int> &members =
      context().problem.constraints.separate[static_cast<size_t>(set)];
  auto clashes = [&](const Unit &unit) {
    return std::any_of(unit.tables.begin(), unit.tables.end(), [&](int other) {
      return other != table &&
             std::find(members.begin(), members.end(), other) != members.end();
    });
  };
  for (const UnitPtr &unit : everywhere)
    if (clashes(*unit))
      return true;
  for (int index : piecesOn(device))
    if (index != leaving && clashes(*regionOf(piece(index)).whole))
      return true;
  return false;
}

bool Board::allows(int device, const Piece &piece, int leaving) const {
  const Unit &whole = *regionOf(piece).whole;
  if (!whole.restricted)
    return true;
  if (!allowsDevice(context(), whole, device))
    return false;
  for (int table : whole.tables)
    for (int set : context().rulesOf(table).separateSets)
      if (holdsOther(device, table, set, leaving))
        return false;
  return true;
}

/// Cutting the first columns of a table off, or joining the last.
int64_t Board::permuteBytesAfter(const Edit &edit) const {
  bool columns =
      (edit.kind == Edit::Split || edit.kind == Edit::Join) && !edit.rows;
  if (!columns)
    return permuteBytes;
  const ShardWork &work = piece(edit.piece).facts->works.front();
  int before = columnPieces[static_cast<size_t>(work.table)];
  auto narrow = [&](const PieceFacts *facts) {
    return facts && facts->works.front().width != work.tableDim ? 1 : 0;
  };
  int after = before - narrow(piece(edit.piece).facts) + narrow(edit.after) +
              narrow(edit.otherAfter);
  if (edit.kind == Edit::Join)
    after -= narrow(piece(edit.other).facts);
  if ((before > 0) == (after > 0))
    return permuteBytes;
  int64_t bytes =
      columnPermuteBytes(context().problem, context().table(work.table),
                         context().featuresOf(work.table));
  return permuteBytes + (after > 0 ? bytes : -bytes);
}

bool Board::fits(const Edit &edit) const {
  const Piece &first = piece(edit.piece);
  size_t d = static_cast<size_t>(first.device);
  size_t t = static_cast<size_t>(edit.target);
  Footprint here = footprints[d];
  here -= first.facts->footprint;
  if (edit.after)
    here += edit.after->footprint;
  if (edit.extra)
    here += edit.extra->footprint;
  Footprint there = d == t ? here : footprints[t];
  if (edit.other >= 0)
    there -= piece(edit.other).facts->footprint;
  if (edit.otherAfter)
    there += edit.otherAfter->footprint;
  int64_t permute = permuteBytesAfter(edit);
  if (there.peakBytes() + permute > context().memoryOf(edit.target) ||
      (d != t && here.peakBytes() + permute > context().memoryOf(first.device)))
    return false;
  if (permute > permuteBytes)
    for (int device = 0; device < context().deviceCount; ++device)
      if (device != first.device && device != edit.target &&
          footprints[static_cast<size_t>(device)].peakBytes() + permute >
              context().memoryOf(device))
        return false;
  if (edit.kind == Edit::Swap || edit.kind == Edit::Exchange)
    return allows(edit.target, first, edit.other) &&
           allows(first.device, piece(edit.other), edit.piece);
  return edit.kind == Edit::Join || edit.kind == Edit::Rewidth ||
         allows(edit.target, first, -1);
}

DeviceLoad Board::loadAfter(const Edit &edit, bool target) const {
  const Piece &first = piece(edit.piece);
  bool same = first.device == edit.target;
  DeviceLoad load = loadOf(target ? edit.target : first.device);
  if (!target || same) {
    addLoad(load, first.facts->load, -1);
    if (edit.after)
      addLoad(load, edit.after->load, 1);
    if (edit.extra)
      addLoad(load, edit.extra->load, 1);
  }
  if (target || same) {
    if (edit.other >= 0)
      addLoad(load, piece(edit.other).facts->load, -1);
    if (edit.otherAfter)
      addLoad(load, edit.otherAfter->load, 1);
  }
  return load;
}

std::vector<const ShardWork *> Board::worksAfter(const Edit &edit,
                                                 bool target) const {
  const Piece &first = piece(edit.piece);
  bool same = first.device == edit.target;
  std::vector<const ShardWork *> works;
  auto add = [&](const std::vector<ShardWork> &more) {
    for (const ShardWork &work : more)
      works.push_back(&work);
  };
  for (const UnitPtr &unit : everywhere)
    add(unit->works);
  for (int index : piecesOn(target ? edit.target : first.device))
    if (index != edit.piece && index != edit.other)
      add(piece(index).facts->works);
  if ((!target || same) && edit.after)
    add(edit.after->works);
  if (!target && edit.extra)
    add(edit.extra->works);
  if ((target || same) && edit.otherAfter)
    add(edit.otherAfter->works);
  return works;
}

void Board::setFacts(int index, int64_t rows, int64_t width,
                     const PieceFacts *facts) {
  Piece &changed = pieces[static_cast<size_t>(index)];
  account(changed.device, *changed.facts, -1);
  countColumns(changed, -1);
  changed.rows = rows;
  changed.width = width;
  changed.facts = facts;
  account(changed.device, *facts, 1);
  countColumns(changed, 1);
}

void Board::relocate(int index, int device) {
  account(piece(index).device, *piece(index).facts, -1);
  relist(index, device);
  account(device, *piece(index).facts, 1);
}

void Board::apply(const Edit &edit, ComputeMs compute,
                  ComputeMs targetCompute) {
  int device = piece(edit.piece).device;
  auto resize = [&](int index, int64_t size, const PieceFacts *facts) {
    const Piece &old = piece(index);
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
    Piece part = piece(edit.piece);
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
    account(edit.target, *part.facts, 1);
    countColumns(piece(index), 1);
    break;
  }
  case Edit::Join: {
    int64_t size = sizeOf(edit.piece) + sizeOf(edit.other);
    account(edit.target, *piece(edit.other).facts, -1);
    countColumns(piece(edit.other), -1);
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
  loads[static_cast<size_t>(device)].compute = compute;
  loads[static_cast<size_t>(edit.target)].compute = targetCompute;
}

SearchState Board::state() const {
  std::vector<UnitPtr> units = everywhere;
  std::vector<int> devices(units.size(), SearchState::kUnplaced);
  auto add = [&](UnitPtr unit, int device) {
    units.push_back(std::move(unit));
    devices.push_back(device);
  };
  for (const Region &region : regions) {
    Shard shard = region.whole->shards.front();
    int64_t row = shard.rowBegin;
    for (const std::vector<int> &band : region.bands) {
      std::vector<int> order = band;
      // A width that is no multiple of 4 comes last.
      auto key = [&](int index) {
        return std::tuple(piece(index).width % kColumnAlignment != 0,
                          piece(index).device, -piece(index).width);
      };
      std::sort(order.begin(), order.end(),
                [&](int a, int b) { return key(a) < key(b); });
      shard.rowBegin = row;
      shard.rowEnd = row = row + piece(band.front()).rows;
      int64_t column = region.whole->shards.front().colBegin;
      for (int index : order) {
        shard.colBegin = column;
        shard.colEnd = column = column + piece(index).width;
        add(makeUnit(context(), {shard}), piece(index).device);
      }
    }
  }
  for (const Piece &one : pieces)
    if (one.device >= 0 && one.unit)
      add(one.unit, one.device);
  SearchState result(context(), units);
  for (size_t i = 0; i < units.size(); ++i)
    if (result.deviceOf(i) == SearchState::kUnplaced)
      result.place(i, devices[i]);
  return result;
}
