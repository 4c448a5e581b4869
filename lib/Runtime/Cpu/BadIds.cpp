//===- BadIds.cpp - Ids out of range --------------------------------------===//

#include "BadIds.h"
#include "neuroshard/Artifact/Error.h"

namespace neuroshard::runtime {

void throwBadIdAt(int64_t position, const ExchangeSpec &spec, int32_t lookup,
                  const JaggedInput &input, const Manifest &manifest,
                  int64_t batch) {
  const ExchangeLookup &reader = spec.lookups[lookup];
  const TableSpec &table = manifest.tables[reader.table];
  const int64_t *first = input.offsets + reader.feature * batch;
  const int64_t *bag = std::upper_bound(first, first + batch + 1, position) - 1;
  int64_t id = spec.idBytes() == 4
                   ? static_cast<const int32_t *>(input.ids)[position]
                   : static_cast<const int64_t *>(input.ids)[position];
  fail(spec.where, "feature \"", spec.features[reader.feature], "\", bag ",
       bag - first, ", position ", position - *bag, " (id ", position,
       " of the input): id ", id, " is out of range for table \"", table.name,
       "\" with ", table.rows, " rows");
}

} // namespace neuroshard::runtime
