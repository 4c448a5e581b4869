//===- LookupShares.cpp - Share of the lookups that rows get --------------===//

#include "neuroshard/Model/LookupShares.h"

using namespace neuroshard;

double neuroshard::lookupShareOf(const Table &table, double rowShare) {
  if (!table.access || table.access->rowMass.empty())
    return rowShare;
  if (rowShare >= 1)
    return 1;
  RowMassQuantile before;
  for (const RowMassQuantile &point : table.access->rowMass) {
    if (point.rowShare >= rowShare && point.rowShare > before.rowShare)
      return before.lookupShare + (rowShare - before.rowShare) /
                                      (point.rowShare - before.rowShare) *
                                      (point.lookupShare - before.lookupShare);
    before = point;
  }
  return before.lookupShare + (rowShare - before.rowShare) /
                                  (1 - before.rowShare) *
                                  (1 - before.lookupShare);
}

bool neuroshard::hasRowsByUse(const Table &table) {
  return table.access && table.access->rowsByUse &&
         !table.access->rowMass.empty();
}

double neuroshard::lookupShareOfRows(const Table &table, int64_t begin,
                                     int64_t end) {
  auto rows = static_cast<double>(table.rows);
  if (!hasRowsByUse(table))
    return static_cast<double>(end - begin) / rows;
  return lookupShareOf(table, static_cast<double>(end) / rows) -
         lookupShareOf(table, static_cast<double>(begin) / rows);
}
