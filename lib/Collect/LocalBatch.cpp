//===- LocalBatch.cpp - Random batches for one device ---------------------===//

#include "LocalBatch.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;
using namespace neuroshard::collect;

namespace {

double rowShare(const MeasuredSet &set, const LocalTable &local) {
  const Table &table = set.problem.tables[static_cast<size_t>(local.table)];
  return static_cast<double>(local.rowEnd - local.rowBegin) /
         static_cast<double>(table.rows);
}

/// Lookups of the local rows in a batch of the size the statistics are for.
double lookupsMeasured(const MeasuredSet &set, const LocalTable &local) {
  const Table &table = set.problem.tables[static_cast<size_t>(local.table)];
  if (!table.access)
    return 0;
  double ids = 0;
  for (const Feature &feature : set.problem.features)
    if (feature.table == local.table)
      ids += feature.presence * feature.meanPooling;
  return ids * static_cast<double>(table.access->batch) * rowShare(set, local);
}

} // namespace

BatchMaker::BatchMaker(const MeasuredSet &set, const LocalProgram &program,
                       uint64_t seed)
    : set(set), program(program), random(seed) {
  for (const LocalTable &local : program.tables) {
    const Table &table = set.problem.tables[static_cast<size_t>(local.table)];
    generators.emplace_back(table.access ? &*table.access : nullptr,
                            lookupsMeasured(set, local),
                            local.rowEnd - local.rowBegin, random());
  }
}

/// Whole tables: lengths around the mean, between its half and one and a half
/// of it. A part of the rows: each id of a bag is in it or not.
int64_t BatchMaker::bagLength(const Feature &feature, const LocalTable &local) {
  std::uniform_real_distribution<double> uniform;
  double mean = feature.meanPooling;
  double share = rowShare(set, local);
  if (feature.presence < 1 && uniform(random) >= feature.presence)
    return 0;
  if (share < 1)
    return std::poisson_distribution<int64_t>(mean * share)(random);
  double length = mean < 2 ? mean : mean * (0.5 + uniform(random));
  return static_cast<int64_t>(length + uniform(random));
}

JaggedIds BatchMaker::makeInput(const std::vector<LocalLookup> &lookups,
                                bool weighted) {
  JaggedIds input;
  input.offsets.push_back(0);
  for (const LocalLookup &lookup : lookups) {
    const Feature &feature =
        set.problem.features[static_cast<size_t>(lookup.feature)];
    const LocalTable &local =
        program.tables[static_cast<size_t>(lookup.localTable)];
    IdGenerator &generator = generators[static_cast<size_t>(lookup.localTable)];
    int64_t batch =
        feature.batch > 0 ? feature.batch : set.problem.batch.globalSize;
    for (int64_t b = 0; b < batch; ++b)
      input.offsets.push_back(input.offsets.back() + bagLength(feature, local));
    for (int64_t ids = static_cast<int64_t>(input.wide.size());
         ids < input.offsets.back(); ++ids)
      input.wide.push_back(generator.next());
  }
  if (weighted)
    input.weights.assign(input.wide.size(), 0.5f);
  if (set.problem.batch.idType == IdType::I32) {
    input.narrow.assign(input.wide.begin(), input.wide.end());
    input.wide.clear();
  }
  return input;
}

std::vector<JaggedIds> BatchMaker::next() {
  std::vector<JaggedIds> inputs;
  for (bool weighted : {false, true})
    if (!program.lookups[weighted].empty())
      inputs.push_back(makeInput(program.lookups[weighted], weighted));
  return inputs;
}
