//===- LocalBatch.h - Random batches for one device -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COLLECT_LOCALBATCH_H
#define NEUROSHARD_LIB_COLLECT_LOCALBATCH_H

#include "LocalProgram.h"
#include "neuroshard/Collect/IdGenerator.h"

#include <random>
#include <vector>

namespace neuroshard::collect {

/// One jagged input: ids feature by feature, offsets over all bags.
struct JaggedIds {
  /// i32 or i64, as the problem says.
  std::vector<int32_t> narrow;
  std::vector<int64_t> wide;
  std::vector<int64_t> offsets;
  /// One for each id of a weighted input.
  std::vector<float> weights;

  const void *data() const {
    return narrow.empty() ? static_cast<const void *>(wide.data())
                          : static_cast<const void *>(narrow.data());
  }
  int64_t size() const { return offsets.back(); }
};

/// Draws batch after batch for a program's exchanges.
class BatchMaker {
public:
  BatchMaker(const MeasuredSet &set, const LocalProgram &program,
             uint64_t seed);

  /// One input for each exchange.
  std::vector<JaggedIds> next();

private:
  JaggedIds makeInput(const std::vector<LocalLookup> &lookups, bool weighted);
  int64_t bagLength(const Feature &feature, const LocalTable &local);

  const MeasuredSet &set;
  const LocalProgram &program;
  std::mt19937_64 random;
  std::vector<IdGenerator> generators; ///< per local table.
};

} // namespace neuroshard::collect

#endif // NEUROSHARD_LIB_COLLECT_LOCALBATCH_H
