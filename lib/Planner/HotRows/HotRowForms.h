//===- HotRowForms.h - Forms of a table with copied first rows --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_HOTROWS_HOTROWFORMS_H
#define NEUROSHARD_LIB_PLANNER_HOTROWS_HOTROWFORMS_H

#include "Units/SearchContext.h"
#include "neuroshard/Model/ShardingPlan.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Where the rows lie that are not hot.
enum class ColdForm {
  AsBefore,     ///< as the given shards, whose borders of rows move so that
                ///< each gets the share of the lookups that it had of the rows.
  EvenAsBefore, ///< the same with its share of the rows.
  Between,      ///< the same with borders midway between those of both.
  Whole,        ///< on one device.
  Blocks,       ///< whole rows on each device, with as many lookups each.
};

/// One form of a table.
struct HotRowForm {
  /// The first rows, which have copies; 0: none, all rows: no others.
  int64_t hot = 0;
  /// A copy in each group of devices, not on each device.
  bool perGroup = false;
  ColdForm cold = ColdForm::AsBefore;
  int coldDevice = 0; ///< of ColdForm::Whole.
  int copyIndex = 0;  ///< in each group, of perGroup.
};

/// Makes shards of the forms of one table.
class HotRowForms {
public:
  /// `given`: the table's shards in a plan. `groupSize`: devices of a group, 0
  /// without groups. All arguments must outlive this.
  HotRowForms(const SearchContext &context, int table,
              const std::vector<Shard> &given, int groupSize);

  /// Numbers of first rows that may have copies, ascending: those at the points
  /// of the row mass that fit into a device; none of a table that may have no
  /// copies.
  const std::vector<int64_t> &hotRows() const { return hots; }
  /// The number at which a share of the lookups is hot.
  int64_t rowsWithLookups(double share) const { return rowOfShare(0, share); }
  int64_t allRows() const { return source.rows; }
  /// Whether the given shards have parts that could be cold.
  bool canStayAsBefore() const { return !isReplicated; }

  /// Empty if there is no such form.
  std::vector<Shard> shardsOf(const HotRowForm &form) const;

private:
  /// The row before which rows from `begin` on have this share of the lookups
  /// of these.
  int64_t rowOfShare(int64_t begin, double share) const;
  Shard makeShard(std::string suffix, int64_t begin, int64_t end) const;
  void addHot(const HotRowForm &form, std::vector<Shard> &shards) const;
  /// False if some device would have no rows.
  bool addCold(const HotRowForm &form, std::vector<Shard> &shards) const;

  const SearchContext &context;
  const int table;
  const Table &source;
  const std::vector<Shard> &given;
  const int groupSize;
  const bool isReplicated;
  std::vector<int64_t> hots;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_HOTROWS_HOTROWFORMS_H
