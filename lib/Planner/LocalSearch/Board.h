//===- Board.h - State of the local search, by sizes alone ------*- C++ -*-===//
///
/// \file
/// The state that the default search improves. The cost of a piece depends on
/// its size, not on where in its table it lies. So a table is held as bands of
/// rows and the widths into which each band is cut: two plans that differ only
/// in which columns a piece has are one state. Pieces get their ranges at the
/// end.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_BOARD_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_BOARD_H

#include "Units/SearchState.h"
#include "Units/UnitStore.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace neuroshard {

/// A part of the problem that is cut and placed independently: usually a whole
/// table.
struct Region {
  UnitPtr whole;
  /// Its pieces may not be cut or joined: written by hand, co-located, or not
  /// made of bands.
  bool rigid = false;
  bool mayCutColumns = false;
  bool mayCutRows = false;
  /// May bands be joined, or pieces of one band?
  bool mayJoin = false;
  int64_t minWidth = 1;
  /// Pieces of each band.
  std::vector<std::vector<int>> bands;
  int pieces = 0;
};

/// A shard, or one of each table of a co-located set, on a device.
struct BoardPiece {
  int region = -1;
  int band = 0;
  int device = -1;
  bool movable = false;
  int64_t rows = 0;
  int64_t width = 0;
  const ShardFacts *facts = nullptr;
  /// Only in a rigid region.
  UnitPtr unit;
  /// Position in its device's list.
  size_t position = 0;
};

/// One move of the local search to a neighbouring state. On the device of
/// `piece` its facts are replaced by `after`, on `target` those of `other` by
/// `otherAfter`; any may be missing. An exchange splits `piece` and swaps one
/// part for `other`.
struct Edit {
  enum Kind { None, Move, Swap, Split, Exchange, Join, Rewidth } kind = None;
  int piece = -1;
  int other = -1;
  int target = -1;
  /// Is a cut along rows made, moved or removed?
  bool rows = false;
  /// Rows or columns of `piece` afterwards.
  int64_t size = 0;
  const ShardFacts *after = nullptr;
  const ShardFacts *otherAfter = nullptr;
  /// Exchange: the facts of `other`, which comes to the device of `piece`.
  const ShardFacts *extra = nullptr;
};

/// The two devices of an edit and their loads afterwards.
struct LoadChange {
  int device = 0;
  int target = 0;
  DeviceLoad load;
  DeviceLoad targetLoad;
  /// The same in each of SearchContext::periods.
  std::vector<LoadChange> periods;
};

/// Does `inner` lie inside `outer`? Both are of the same table.
bool contains(const Shard &outer, const Shard &inner);

/// The units from which a placement's units were cut: `wholes`, but the whole
/// table where the placement cuts a table across the borders of its `wholes`
/// (into other row blocks, say).
std::vector<UnitPtr> regionsFor(const SearchContext &context,
                                const std::vector<UnitPtr> &wholes,
                                const SearchState &placed);

/// mean += share x one.
void addShare(ComputeMs &mean, const ComputeMs &one, double share);

/// With snapshots a board keeps totals for each of them as well. In those of
/// the summary, which only guide the search, compute is the mean then.
class Board {
public:
  /// `uncut`: the units before any cut; `placed`: a placement of all of them.
  Board(const SearchContext &context, const std::vector<UnitPtr> &uncut,
        const SearchState &placed);

  /// The placement, where each piece has its range.
  SearchState state() const;

  const BoardPiece &piece(int index) const {
    return pieces[static_cast<size_t>(index)];
  }
  const Region &regionOf(const BoardPiece &piece) const {
    return regions[static_cast<size_t>(piece.region)];
  }
  const Region &region(int index) const {
    return regions[static_cast<size_t>(index)];
  }
  int regionCount() const { return static_cast<int>(regions.size()); }
  const std::vector<int> &piecesOn(int device) const {
    return lists[static_cast<size_t>(device)];
  }
  const DeviceTotals &totals() const { return sums; }
  const DeviceLoad &loadOf(int device) const {
    return sums.in(kSummary).loadOf(device);
  }
  /// One more than the largest index of a piece / number of pieces in use.
  int pieceSlots() const { return static_cast<int>(pieces.size()); }
  int pieceCount() const { return used; }

  /// Edits with their facts; kind None when a rule or a size forbids the edit.
  /// Memory, devices and separation are checked by fits().
  Edit move(int piece, int target) const;
  Edit swap(int piece, int other) const;
  Edit split(int piece, int target, bool rows, int64_t stays);
  Edit exchange(int piece, int other, bool rows, int64_t stays);
  Edit join(int piece, int other);
  Edit rewidth(int piece, int other, int64_t width);

  /// Does an edit keep to memory, device rules and separation?
  bool fits(const Edit &edit) const;
  /// The load of the piece's device / of the target after an edit, with the
  /// compute from before.
  DeviceLoad loadAfter(const Edit &edit, bool target,
                       int period = kSummary) const;
  /// The works of the device after an edit, for models without a SumEmbedding.
  std::vector<const ShardWork *> worksAfter(const Edit &edit, bool target,
                                            int period = kSummary) const;
  /// `change` gives the compute of the two devices afterwards.
  void apply(const Edit &edit, const LoadChange &change);
  /// Works out all totals anew, without the rounding errors of many edits.
  void refresh();

  /// The facts of a piece of this size of a region; made on first use.
  const ShardFacts *factsOf(int region, int64_t rows, int64_t width);

  const SearchContext &context() const { return *owner; }

private:
  void addRegion(const UnitPtr &whole, const SearchState &placed,
                 const std::vector<size_t> &units);
  bool layOut(int region, const SearchState &placed,
              const std::vector<size_t> &units);
  void pinRowBlocks(const Region &region);
  int addPiece(BoardPiece piece);
  void removePiece(int index);
  void askComputes(int period);
  void takeMeanCompute();
  void setFacts(int index, int64_t rows, int64_t width,
                const ShardFacts *facts);
  void relocate(int index, int device);
  void relist(int index, int device);
  int64_t permuteBytesAfter(const Edit &edit) const;
  /// Do hosts have room if the devices hold so much after an edit?
  bool hostsHold(int device, Footprint here, int target, Footprint there) const;
  bool allows(int device, const BoardPiece &piece, int leaving) const;

  const SearchContext *owner;
  std::vector<Region> regions;
  std::vector<BoardPiece> pieces;
  std::vector<int> freeSlots;
  int used = 0;
  std::vector<std::vector<int>> lists;
  DeviceTotals sums;
  ColumnCuts cuts;
  /// By table, rows, width. Shared by all copies, which belong to one thread.
  using FactsBySize = std::unordered_map<std::array<int64_t, 3>,
                                         const ShardFacts *, HashNumbers<3>>;
  std::shared_ptr<FactsBySize> facts = std::make_shared<FactsBySize>();
  /// Units on every device.
  std::vector<UnitPtr> everywhere;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_BOARD_H
