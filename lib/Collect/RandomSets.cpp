//===- RandomSets.cpp - Random shard sets to measure ----------------------===//

#include "neuroshard/Collect/RandomSets.h"

#include "neuroshard/CostModel/ComputeFeatures.h"
#include "neuroshard/Model/StoredBytes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

using namespace neuroshard;

namespace {

class SetMaker {
public:
  SetMaker(const TablePool &pool, const RandomSetOptions &options,
           uint64_t seed)
      : pool(pool), options(options), random(seed) {}

  MeasuredSet make();

private:
  double uniform() { return std::uniform_real_distribution<double>()(random); }
  bool chance(double probability) { return uniform() < probability; }
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  template <typename T, size_t N> T oneOf(const std::array<T, N> &values) {
    return values[static_cast<size_t>(between(0, N - 1))];
  }

  void drawSettings();
  int64_t drawDim();
  ElementType drawElement();
  Optimizer drawOptimizer();
  size_t drawPoolTable();
  bool add();
  void addFeatures(int table, const PoolTable &source, bool rare);
  void addShards(const Table &table);

  const TablePool &pool;
  const RandomSetOptions &options;
  std::mt19937_64 random;
  MeasuredSet set;
  std::vector<bool> used;
  bool smallTables = false;
  ElementType element = ElementType::F32;
  Optimizer optimizer;
  double lookups = 0;
  double bytes = 0;
};

/// Widths of rare kernels (weighted, unpooled, 4-byte ids), so that not every
/// combination has to be compiled.
constexpr std::array<int64_t, 5> kCommonDims = {8, 16, 32, 64, 128};

ElementType SetMaker::drawElement() {
  double u = uniform();
  return u < 0.6   ? ElementType::F32
         : u < 0.8 ? ElementType::F16
                   : ElementType::BF16;
}

Optimizer SetMaker::drawOptimizer() {
  Optimizer result;
  result.kind = oneOf(kPricedOptimizers);
  return result;
}

void SetMaker::drawSettings() {
  ShardingProblem &problem = set.problem;
  problem.source = "random shard set";
  problem.topology = *parseTopology("1xCPU@1024GiB");
  problem.batch.globalSize = options.batchFactor * 512 << between(0, 5);
  problem.batch.idType = chance(0.25) ? IdType::I32 : IdType::I64;
  problem.optimizerSemantics =
      chance(0.5) ? OptimizerSemantics::Exact : OptimizerSemantics::PerShard;
  element = drawElement();
  optimizer = drawOptimizer();
}

int64_t SetMaker::drawDim() {
  double u = uniform();
  if (set.problem.batch.idType == IdType::I32 || u < 0.3)
    return oneOf(kCommonDims);
  if (u < 0.9)
    return 4 * between(1, 32);
  return 16 * between(1, 32);
}

size_t SetMaker::drawPoolTable() {
  for (;;) {
    size_t table = static_cast<size_t>(
        between(0, static_cast<int64_t>(pool.tables.size()) - 1));
    if (TablePool::isHeldOut(table) != options.heldOut || used[table])
      continue;
    if (smallTables && pool.tables[table].rows > 300000)
      continue;
    return table;
  }
}

void SetMaker::addFeatures(int table, const PoolTable &source, bool rare) {
  int64_t count = chance(0.05) ? between(2, 3) : 1;
  for (int64_t i = 0; i < count; ++i) {
    Feature feature;
    feature.name = set.problem.tables[static_cast<size_t>(table)].name + "." +
                   std::to_string(i);
    feature.table = table;
    feature.meanPooling = source.pooling;
    if (chance(0.1))
      feature.presence = 0.25 * static_cast<double>(between(1, 3));
    if (rare && chance(0.5))
      feature.weighted = true;
    else if (rare)
      feature.pooling = Pooling::None;
    set.problem.features.push_back(feature);
  }
}

/// Mostly whole; some row shards; some column shards, of which exact row-wise
/// state keeps both halves here.
void SetMaker::addShards(const Table &table) {
  Shard shard;
  shard.name = "s" + table.name;
  shard.table = table.name;
  shard.rowEnd = table.rows;
  shard.colEnd = table.dim;
  shard.devices = {0};
  double room = static_cast<double>(options.memoryBytes) - bytes;
  bool tooLarge = storedBytes(table) > 0.7 * room;
  if (table.rows >= 64 && (tooLarge || chance(0.12))) {
    double share = tooLarge ? 0.7 * room / storedBytes(table) : 1;
    double part =
        share * (tooLarge ? 1 : 1.0 / static_cast<double>(between(2, 8)));
    shard.rowEnd = std::max<int64_t>(
        1, static_cast<int64_t>(part * static_cast<double>(table.rows)));
  }
  bytes += storedBytes(table, shard.rows());
  bool columnSplit = table.dim % 8 == 0 && table.dim >= 8 && chance(0.12);
  if (!columnSplit)
    return set.shards.push_back(shard);
  shard.colEnd = table.dim / 2;
  set.shards.push_back(shard);
  bool alone = !needsNormExchange(table.optimizer.kind,
                                  set.problem.optimizerSemantics, true);
  if (alone && chance(0.7))
    return;
  shard.name += "b";
  shard.colBegin = table.dim / 2;
  shard.colEnd = table.dim;
  set.shards.push_back(shard);
}

/// False: the set has as many lookups as it may.
bool SetMaker::add() {
  size_t index = drawPoolTable();
  const PoolTable &source = pool.tables[index];
  double ids =
      source.pooling * static_cast<double>(set.problem.batch.globalSize);
  if (lookups > 0 && lookups + ids > static_cast<double>(options.maxLookups))
    return false;
  used[index] = true;
  lookups += ids;
  bool rare = chance(0.06);
  Table table;
  table.name = std::to_string(index);
  table.rows = source.rows;
  table.dim = rare ? oneOf(kCommonDims) : drawDim();
  table.elementType = chance(0.1) ? drawElement() : element;
  table.optimizer = chance(0.1) ? drawOptimizer() : optimizer;
  table.access = (*pool.access)[index];
  set.problem.tables.push_back(table);
  addFeatures(static_cast<int>(set.problem.tables.size()) - 1, source, rare);
  addShards(table);
  return true;
}

MeasuredSet SetMaker::make() {
  used.resize(pool.tables.size());
  drawSettings();
  double kind = uniform();
  int64_t count = kind < 0.88   ? between(1, 15)
                  : kind < 0.95 ? between(16, 60)
                                : between(61, 120);
  smallTables = count > 15;
  // A set of many tables keeps to batches its lookups allow.
  while (smallTables &&
         set.problem.batch.globalSize * count * 4 > options.maxLookups &&
         set.problem.batch.globalSize > 512)
    set.problem.batch.globalSize /= 2;
  while (static_cast<int64_t>(set.problem.tables.size()) < count)
    if (!add())
      break;
  return std::move(set);
}

} // namespace

MeasuredSet neuroshard::makeRandomSet(const TablePool &pool,
                                      const RandomSetOptions &options,
                                      uint64_t seed, int64_t index) {
  std::seed_seq mixed = {static_cast<uint32_t>(seed),
                         static_cast<uint32_t>(seed >> 32),
                         static_cast<uint32_t>(index)};
  std::array<uint32_t, 2> words;
  mixed.generate(words.begin(), words.end());
  return SetMaker(pool, options,
                  static_cast<uint64_t>(words[0]) << 32 | words[1])
      .make();
}

int neuroshard::poolIndex(const Table &table) { return std::stoi(table.name); }
