//===- Board.cpp - State of the local search, by sizes alone --------------===//

#include "Board.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace neuroshard;

void neuroshard::addShare(ComputeMs &mean, const ComputeMs &one, double share) {
  mean.forwardMs += share * one.forwardMs;
  mean.backwardMs += share * one.backwardMs;
}

Board::Board(const SearchContext &context, const std::vector<UnitPtr> &uncut,
             const SearchState &placed)
    : owner(&context), lists(static_cast<size_t>(context.deviceCount)),
      sums(context, context.periods.size()), cuts(context) {
  const std::vector<UnitPtr> wholes = regionsFor(context, uncut, placed);
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
  // Replicated tables are not on the board.
  for (size_t i = 0; i < wholes.size(); ++i)
    if (!unitsOfWhole[i].empty())
      addRegion(wholes[i], placed, unitsOfWhole[i]);
  for (int device = 0; device < context.deviceCount; ++device)
    sums.in(kSummary).setCompute(device, placed.loadOf(device).compute);
  refresh();
  for (size_t period = 0; period < context.periods.size(); ++period)
    askComputes(static_cast<int>(period));
  if (!context.periods.empty())
    takeMeanCompute();
}

void Board::askComputes(int period) {
  std::vector<ShardSet> sets;
  for (int device = 0; device < context().deviceCount; ++device) {
    ShardSet &set = sets.emplace_back();
    set.deviceClass = &context().classOf(device);
    auto add = [&](const Demand &demand) {
      for (const ShardWork &work : demand.works)
        set.shards.push_back(&work);
    };
    for (const UnitPtr &unit : everywhere)
      add(unit->in(period));
    for (int index : piecesOn(device))
      add(piece(index).facts->in(period));
  }
  std::vector<ComputeMs> computes(sets.size());
  context().model.computeMs(sets, computes);
  for (size_t d = 0; d < computes.size(); ++d)
    sums.in(period).setCompute(static_cast<int>(d), computes[d]);
}

void Board::takeMeanCompute() {
  for (int device = 0; device < context().deviceCount; ++device) {
    ComputeMs mean;
    for (size_t p = 0; p < context().periods.size(); ++p)
      addShare(mean, sums.in(static_cast<int>(p)).loadOf(device).compute,
               context().shares[p]);
    sums.in(kSummary).setCompute(device, mean);
  }
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
  // Other targets run one form of row blocks, which single cuts do not reach.
  region.mayCutRows = context().problem.target == Target::Native &&
                      rules.allows(wholeWidth ? ShardingKind::RowWise
                                              : ShardingKind::RowColumn);
  region.mayJoin = !rules.kindsListed || (wholeRows && wholeWidth);
  if (wholeWidth && !region.mayCutRows)
    pinRowBlocks(region);
  if (!region.rigid)
    return;
  for (size_t unit : units) {
    BoardPiece piece;
    piece.region = index;
    piece.device = placed.deviceOf(unit);
    piece.unit = placed.units()[unit];
    piece.movable = piece.unit->forcedDevice == -1;
    piece.rows = piece.unit->shards.front().rows();
    piece.width = piece.unit->shards.front().width();
    piece.facts = piece.unit.get();
    addPiece(std::move(piece));
  }
}

/// Row blocks that a rule or the target prescribes lie on fixed devices, in
/// order. Edits would break that form, so their pieces may not move.
void Board::pinRowBlocks(const Region &region) {
  if (region.bands.size() < 2 ||
      static_cast<int>(region.bands.size()) < region.pieces)
    return;
  for (const std::vector<int> &band : region.bands)
    pieces[static_cast<size_t>(band.front())].movable = false;
}

/// Reads the units of a region as bands of rows; false when they are none.
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
    BoardPiece piece;
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

const ShardFacts *Board::factsOf(int region, int64_t rows, int64_t width) {
  const Unit &whole = *regions[static_cast<size_t>(region)].whole;
  int table = whole.tables.front();
  auto [entry, inserted] = facts->try_emplace({table, rows, width}, nullptr);
  if (!inserted)
    return entry->second;
  Shard shard = whole.shards.front();
  shard.rowEnd = shard.rowBegin + rows;
  shard.colEnd = shard.colBegin + width;
  // The store keeps them alive.
  entry->second = neuroshard::factsOf(context(), table, shard).get();
  return entry->second;
}

int Board::addPiece(BoardPiece piece) {
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
  BoardPiece &gone = pieces[static_cast<size_t>(index)];
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
  BoardPiece &moved = pieces[static_cast<size_t>(index)];
  std::vector<int> &from = lists[static_cast<size_t>(moved.device)];
  from[moved.position] = from.back();
  pieces[static_cast<size_t>(from.back())].position = moved.position;
  from.pop_back();
  std::vector<int> &to = lists[static_cast<size_t>(device)];
  moved.device = device;
  moved.position = to.size();
  to.push_back(index);
}

void Board::refresh() {
  sums.clear();
  cuts.clear();
  for (int device = 0; device < context().deviceCount; ++device) {
    for (const UnitPtr &unit : everywhere)
      sums.add(device, *unit);
    for (int index : piecesOn(device)) {
      sums.add(device, *piece(index).facts);
      cuts.add(*piece(index).facts);
    }
  }
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
  for (const BoardPiece &one : pieces)
    if (one.device >= 0 && one.unit)
      add(one.unit, one.device);
  SearchState result(context(), units);
  for (size_t i = 0; i < units.size(); ++i)
    if (result.deviceOf(i) == SearchState::kUnplaced)
      result.place(i, devices[i]);
  return result;
}
