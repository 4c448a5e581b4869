//===- ComputeSamplesTest.cpp - Samples survive the file; damage does not -===//

#include "neuroshard/CostModel/ComputeSamples.h"
#include "neuroshard/CostModel/Safetensors.h"

#include "TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

/// Every field has a value of its own.
ShardWork someShard(int table, const AccessStatistics *access) {
  ShardWork work;
  work.table = table;
  work.rows = 5'000'000'000;
  work.width = 64;
  work.tableRows = 6'000'000'000;
  work.tableDim = 128;
  work.elementType = ElementType::BF16;
  work.outputType = ElementType::F16;
  work.optimizer = OptimizerKind::RowWiseAdagrad;
  work.pooling = 12.5;
  work.features = 3;
  work.lookups = 1000.25;
  work.outputRows = 512;
  work.uniqueRows = 700.5;
  work.updateLookups = 2000.5;
  work.updateGradientRows = 1024;
  work.updateUniqueRows = 900.75;
  work.idBytes = 4;
  work.weighted = true;
  work.rowSplit = true;
  work.columnSplit = true;
  work.replicated = true;
  work.exactNorms = true;
  work.access = access;
  work.dims = 192;
  work.inputBytes = 4096;
  work.forwardBytes = 8192;
  work.backwardBytes = 16384;
  return work;
}

/// Table 0 has statistics, table 1 has none.
ComputeSamples someSamples() {
  auto pool = std::make_shared<std::vector<AccessStatistics>>(2);
  (*pool)[0].batch = 65536;
  (*pool)[0].reuse[2] = 0.1;
  (*pool)[0].reuse[16] = 0.9;
  ComputeSamples samples;
  samples.metadata = {{"device_class", "CPU"}, {"machine", "a b"}};
  ComputeSample first;
  first.shards = {someShard(0, pool->data()), someShard(1, nullptr)};
  first.batch = 4096;
  first.measured = {1.25, 2.5};
  first.spread = 0.125;
  first.referenceBeforeMs = 2;
  first.referenceAfterMs = 4;
  first.heldOut = true;
  first.time = 1'800'000'000;
  ComputeSample second;
  second.batch = 1;
  second.repeatOf = 0;
  second.measured = {0.1, 0.2};
  second.referenceBeforeMs = second.referenceAfterMs = 6;
  samples.samples = {first, second, first};
  samples.access = std::move(pool);
  return samples;
}

class ComputeSamplesTest : public testing::Test {
protected:
  /// The error of reading the samples after `damage`.
  template <typename Damage> std::string errorAfter(Damage damage) {
    EXPECT_TRUE(writeComputeSamples(someSamples(), path));
    Expected<TensorFile> file = readTensorFile(path);
    damage(*file);
    EXPECT_TRUE(writeTensorFile(*file, path));
    Expected<ComputeSamples> read = readComputeSamples(path);
    if (read)
      return "no error";
    EXPECT_THAT(read.error()[0].where, testing::StartsWith(path));
    return toString(read.error());
  }

  TemporaryFolder folder;
  std::string path = folder.file("a.safetensors");
};

void expectSame(const ShardWork &a, const ShardWork &b) {
  EXPECT_EQ(a.table, b.table);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.tableRows, b.tableRows);
  EXPECT_EQ(a.tableDim, b.tableDim);
  EXPECT_EQ(a.elementType, b.elementType);
  EXPECT_EQ(a.outputType, b.outputType);
  EXPECT_EQ(a.optimizer, b.optimizer);
  EXPECT_EQ(a.pooling, b.pooling);
  EXPECT_EQ(a.features, b.features);
  EXPECT_EQ(a.lookups, b.lookups);
  EXPECT_EQ(a.outputRows, b.outputRows);
  EXPECT_EQ(a.uniqueRows, b.uniqueRows);
  EXPECT_EQ(a.updateLookups, b.updateLookups);
  EXPECT_EQ(a.updateGradientRows, b.updateGradientRows);
  EXPECT_EQ(a.updateUniqueRows, b.updateUniqueRows);
  EXPECT_EQ(a.idBytes, b.idBytes);
  EXPECT_EQ(a.weighted, b.weighted);
  EXPECT_EQ(a.rowSplit, b.rowSplit);
  EXPECT_EQ(a.columnSplit, b.columnSplit);
  EXPECT_EQ(a.replicated, b.replicated);
  EXPECT_EQ(a.exactNorms, b.exactNorms);
  EXPECT_EQ(a.dims, b.dims);
  EXPECT_EQ(a.inputBytes, b.inputBytes);
  EXPECT_EQ(a.forwardBytes, b.forwardBytes);
  EXPECT_EQ(a.backwardBytes, b.backwardBytes);
}

TEST_F(ComputeSamplesTest, RoundTrip) {
  ComputeSamples written = someSamples();
  ASSERT_TRUE(writeComputeSamples(written, path));
  Expected<ComputeSamples> read = readComputeSamples(path);
  ASSERT_TRUE(read) << toString(read.error());
  EXPECT_EQ(read->metadata, written.metadata);
  EXPECT_EQ(*read->access, *written.access);
  ASSERT_EQ(read->samples.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const ComputeSample &a = written.samples[i], &b = read->samples[i];
    ASSERT_EQ(a.shards.size(), b.shards.size());
    for (size_t s = 0; s < a.shards.size(); ++s)
      expectSame(a.shards[s], b.shards[s]);
    EXPECT_EQ(a.batch, b.batch);
    EXPECT_EQ(a.measured.forwardMs, b.measured.forwardMs);
    EXPECT_EQ(a.measured.backwardMs, b.measured.backwardMs);
    EXPECT_EQ(a.spread, b.spread);
    EXPECT_EQ(a.referenceBeforeMs, b.referenceBeforeMs);
    EXPECT_EQ(a.referenceAfterMs, b.referenceAfterMs);
    EXPECT_EQ(a.repeatOf, b.repeatOf);
    EXPECT_EQ(a.heldOut, b.heldOut);
    EXPECT_EQ(a.time, b.time);
  }
  EXPECT_EQ(read->samples[0].shards[0].access, read->access->data());
  EXPECT_EQ(read->samples[0].shards[1].access, nullptr);
}

// Reference times 3, 6, 3: the median is 3.
TEST_F(ComputeSamplesTest, CorrectedForTheMachinesDrift) {
  ASSERT_TRUE(writeComputeSamples(someSamples(), path));
  Expected<ComputeSamples> read = readComputeSamples(path);
  ASSERT_TRUE(read);
  EXPECT_DOUBLE_EQ(read->samples[0].corrected.forwardMs, 1.25);
  EXPECT_DOUBLE_EQ(read->samples[1].corrected.forwardMs, 0.05);
  EXPECT_DOUBLE_EQ(read->samples[1].corrected.backwardMs, 0.1);
}

TEST_F(ComputeSamplesTest, AnEmptySetOfSamples) {
  ASSERT_TRUE(writeComputeSamples({}, path));
  Expected<ComputeSamples> read = readComputeSamples(path);
  ASSERT_TRUE(read) << toString(read.error());
  EXPECT_TRUE(read->samples.empty());
}

TEST_F(ComputeSamplesTest, WritesOnlyWhatItCanKeep) {
  ComputeSamples samples = someSamples();
  samples.samples[0].shards[0].table = 2;
  EXPECT_THAT(toString(writeComputeSamples(samples, path).error()),
              HasSubstr("table 2 is not in the pool of 2"));
  samples = someSamples();
  samples.samples[0].shards[0].access = nullptr;
  EXPECT_THAT(toString(writeComputeSamples(samples, path).error()),
              HasSubstr("samples[0]: the access statistics of table 0 are not "
                        "those of the pool"));
}

TEST_F(ComputeSamplesTest, Damage) {
  EXPECT_THAT(
      errorAfter([](TensorFile &f) { f.metadata["schema"] = "x.v2"; }),
      HasSubstr("expected 'neuroshard.compute_samples.v1', got 'x.v2'"));
  EXPECT_THAT(errorAfter([](TensorFile &f) { f.metadata.clear(); }),
              HasSubstr("got ''"));
  EXPECT_THAT(errorAfter([](TensorFile &f) { f.tensors.erase("shard.width"); }),
              HasSubstr("shard.width: no such tensor, expected I32 [4]"));
  EXPECT_THAT(errorAfter([](TensorFile &f) {
                std::array<double, 2> two = {1, 2};
                f.tensors["sample.forward_ms"] = makeTensor<double>(two);
              }),
              HasSubstr("sample.forward_ms: expected F64 [3], got F64 [2]"));
  EXPECT_THAT(errorAfter([](TensorFile &f) {
                std::array<int64_t, 4> first = {0, 3, 2, 4};
                f.tensors["sample.first_shard"] = makeTensor<int64_t>(first);
              }),
              HasSubstr("expected ascending numbers from 0"));
  EXPECT_THAT(errorAfter([](TensorFile &f) {
                std::array<int64_t, 4> first = {0, 1, 2, INT64_MAX};
                f.tensors["sample.first_shard"] = makeTensor<int64_t>(first);
              }),
              HasSubstr("shard.rows: expected I64 [9223372036854775807]"));
  EXPECT_THAT(errorAfter([](TensorFile &f) {
                std::array<int32_t, 4> tables = {0, 0, 7, 0};
                f.tensors["shard.table"] = makeTensor<int32_t>(tables);
              }),
              HasSubstr("shard 2: table 7 is not in the pool of 2"));
  EXPECT_THAT(errorAfter([](TensorFile &f) {
                std::array<uint8_t, 4> types = {0, 0, 0, 99};
                f.tensors["shard.optimizer"] = makeTensor<uint8_t>(types);
              }),
              HasSubstr("shard 3: unknown element type"));
  EXPECT_THAT(errorAfter([](TensorFile &f) {
                std::array<double, 3> ms = {
                    1, std::numeric_limits<double>::quiet_NaN(), 1};
                f.tensors["sample.forward_ms"] = makeTensor<double>(ms);
              }),
              HasSubstr("samples[1]: expected finite times"));
  EXPECT_THAT(errorAfter([](TensorFile &f) {
                std::array<int32_t, 3> of = {-1, 3, -1};
                f.tensors["sample.repeat_of"] = makeTensor<int32_t>(of);
              }),
              HasSubstr("it repeats sample 3, but there are 3"));
}

} // namespace
