//===- SyntheticSamples.cpp - Made-up measurements of shard sets ----------===//

#include "SyntheticSamples.h"

#include "neuroshard/CostModel/Roofline.h"

#include <cmath>
#include <random>

using namespace neuroshard;

namespace {

constexpr int kTables = 600;
constexpr int kHeldOutTables = 150;

class SamplesMaker {
public:
  explicit SamplesMaker(const test::SyntheticOptions &options)
      : options(options), random(options.seed) {}

  ComputeSamples make();

private:
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  }
  int below(int bound) { return static_cast<int>(random() % bound); }
  double logUniform(double low, double high) {
    return std::exp(uniform(std::log(low), std::log(high)));
  }
  ShardingProblem makeTables();
  ShardWork drawShard(bool heldOut, int64_t batch, OptimizerKind optimizer);
  ComputeSample draw(bool heldOut);
  void measure(ComputeSample &sample);

  test::SyntheticOptions options;
  std::mt19937_64 random;
  ShardingProblem tables;
  std::shared_ptr<std::vector<AccessStatistics>> access;
  std::unique_ptr<CostModel> roofline = makeRooflineModel();
};

ShardingProblem SamplesMaker::makeTables() {
  ShardingProblem problem;
  for (int t = 0; t < kTables; ++t) {
    Table table;
    table.name = std::to_string(t);
    table.rows = static_cast<int64_t>(logUniform(100, 1e7));
    table.dim = 4 * (1 + below(32));
    AccessStatistics statistics;
    double left = 1;
    for (size_t bin = 0; bin < 5; ++bin) {
      statistics.reuse[bin] = bin == 4 ? left : left * uniform(0.3, 0.8);
      left -= statistics.reuse[bin];
    }
    statistics.batch = 65536;
    table.access = statistics;
    problem.tables.push_back(table);
    Feature feature;
    feature.name = table.name;
    feature.table = t;
    feature.meanPooling = logUniform(1, 60);
    problem.features.push_back(feature);
  }
  return problem;
}

ShardWork SamplesMaker::drawShard(bool heldOut, int64_t batch,
                                  OptimizerKind optimizer) {
  int own = kTables - kHeldOutTables;
  int index = heldOut ? own + below(kHeldOutTables) : below(own);
  tables.batch.globalSize = batch;
  Table &table = tables.tables[static_cast<size_t>(index)];
  table.optimizer.kind = optimizer;
  Shard shard;
  shard.table = table.name;
  shard.rowEnd =
      below(4) == 0 ? std::max<int64_t>(1, table.rows / 2) : table.rows;
  shard.colEnd = table.dim;
  shard.devices = {0};
  ShardWork work = describeShard(tables, index, {index}, shard);
  work.access = &(*access)[static_cast<size_t>(index)];
  return work;
}

/// The time of a sample as this test's machine has it.
void SamplesMaker::measure(ComputeSample &sample) {
  ShardSet set{findDeviceClass("CPU"), {}};
  double ids = 0, rows = 0;
  for (const ShardWork &shard : sample.shards) {
    set.shards.push_back(&shard);
    ids += shard.lookups;
    rows += shard.updateUniqueRows *
            (shard.optimizer == OptimizerKind::Adam ? 3 : 1);
  }
  ComputeMs time;
  roofline->computeMs(std::span(&set, 1), std::span(&time, 1));
  std::normal_distribution<double> noise(0, options.noise);
  double speed = options.slowness;
  sample.measured.forwardMs =
      speed * (0.7 * std::pow(time.forwardMs, 1.1) + 4e-6 * ids) *
      std::exp(noise(random));
  sample.measured.backwardMs =
      speed * (time.backwardMs + 1e-5 * rows) * std::exp(noise(random));
  sample.corrected = sample.measured;
  sample.referenceBeforeMs = sample.referenceAfterMs = 1;
}

ComputeSample SamplesMaker::draw(bool heldOut) {
  ComputeSample sample;
  sample.heldOut = heldOut;
  sample.batch = 256 << below(5);
  OptimizerKind optimizer = static_cast<OptimizerKind>(below(4));
  int shards = 1 + below(10);
  for (int s = 0; s < shards; ++s)
    sample.shards.push_back(drawShard(heldOut, sample.batch, optimizer));
  measure(sample);
  return sample;
}

ComputeSamples SamplesMaker::make() {
  tables = makeTables();
  access = std::make_shared<std::vector<AccessStatistics>>();
  for (const Table &table : tables.tables)
    access->push_back(*table.access);
  ComputeSamples samples;
  samples.access = access;
  samples.metadata = {{"device_class", "CPU"}, {"machine", "made up"}};
  for (int i = 0; i < options.count; ++i)
    samples.samples.push_back(draw(i < options.heldOut));
  for (int i = 0; i < options.repeats; ++i) {
    ComputeSample again = samples.samples[static_cast<size_t>(i)];
    again.repeatOf = i;
    measure(again);
    samples.samples.push_back(again);
  }
  return samples;
}

} // namespace

ComputeSamples
neuroshard::test::makeSyntheticSamples(const SyntheticOptions &options) {
  return SamplesMaker(options).make();
}
