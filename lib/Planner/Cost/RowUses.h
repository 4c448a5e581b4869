//===- RowUses.h - Access rates of a table's rows ---------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_ROWUSES_H
#define NEUROSHARD_LIB_PLANNER_COST_ROWUSES_H

#include "neuroshard/Model/Table.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Rows that are used alike.
struct RowGroup {
  double rows = 0;
  double uses = 0; ///< expected ids of a batch for one of them.
};

/// The rows of a table by their uses in a batch of so many samples, with
/// `lookups` ids for it, of which each row gets a Poisson distributed number:
/// by the table's row mass; else by its reuse histogram; else all rows are
/// alike.
///
/// A histogram of one batch tells how many rows there are of each rate by
/// maximum likelihood (EM: Dempster, Laird, Rubin, J. R. Stat. Soc. B 1977),
/// but not how those differ that it has once or never: these count as alike.
///
/// In the order of the row mass, the hottest first, where there is one.
std::vector<RowGroup> rowUses(const Table &table, double lookups, double batch);

/// What some rows have of their table's uses.
struct RowsShare {
  double lookups = 0;
  double distinct = 0; ///< of the rows that a batch touches.
};

/// Of rows [begin, end) in a batch of so many samples with `lookups` ids:
/// lookupShareOfRows(), and distinct rows likewise.
RowsShare shareOfRows(const Table &table, int64_t begin, int64_t end,
                      double lookups, double batch);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_ROWUSES_H
