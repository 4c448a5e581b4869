//===- CheckTest.cpp - check() names everything wrong with a problem ------===//

#include "Support.h"
#include "neuroshard/Model/TableFingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace neuroshard;
using namespace neuroshard::test;
using testing::HasSubstr;

namespace {

TEST(CheckTest, SoundProblemHasNoErrors) {
  EXPECT_EQ(text(check(twoTables())), "");
}

TEST(CheckTest, EverythingWrongIsReportedAtOnce) {
  ShardingProblem problem = twoTables();
  problem.tables[0].rows = -3;
  problem.tables[1].dim = 0;
  problem.tables[1].name = "a";
  problem.features[0].meanPooling = std::nan("");
  problem.batch.globalSize = 0;
  std::string errors = text(check(problem));
  EXPECT_THAT(errors, HasSubstr("tables[0].rows: expected a whole number in "
                                "[1, 281474976710656], got: -3"));
  EXPECT_THAT(errors, HasSubstr("tables[1].dim"));
  EXPECT_THAT(errors, HasSubstr("tables[1].name: names must be unique, 'a' is "
                                "used before"));
  EXPECT_THAT(errors, HasSubstr("features[0].mean_pooling: expected a number "
                                "in [0, 1e+06], got: nan"));
  EXPECT_THAT(errors, HasSubstr("batch.global_size"));
}

TEST(CheckTest, NamesHaveNoNul) {
  ShardingProblem problem = twoTables();
  problem.tables[0].name = std::string("a\0b", 3);
  problem.features[1].name = std::string("\0", 1);
  std::string errors = text(check(problem));
  EXPECT_THAT(errors, HasSubstr("tables[0].name: expected a name without the "
                                "character NUL, got: 'a"));
  EXPECT_THAT(errors, HasSubstr("features[1].name: expected a name without"));
}

TEST(CheckTest, TablesInBytesAreNotTrainedAndNoResults) {
  ShardingProblem problem = twoTables();
  problem.tables[0].elementType = ElementType::Int8;
  problem.tables[0].optimizer = Optimizer();
  EXPECT_EQ(text(check(problem)), "");
  problem.tables[0].optimizer.kind = OptimizerKind::Adagrad;
  problem.batch.outputType = ElementType::Int4;
  std::string errors = text(check(problem));
  EXPECT_THAT(errors, HasSubstr("tables[0].optimizer: a table of int8 is "
                                "served and not trained: leave the optimizer "
                                "away"));
  EXPECT_THAT(errors, HasSubstr("batch.output_type: expected f32, f16 or bf16, "
                                "got: int4"));
}

TEST(CheckTest, Histogram) {
  ShardingProblem problem = twoTables();
  AccessStatistics access;
  access.batch = 64;
  access.reuse[0] = std::nan("");
  problem.tables[0].access = access;
  EXPECT_THAT(text(check(problem)),
              HasSubstr("tables[0].access.reuse[0]: expected a number in [0, "
                        "1], got: nan"));
  problem.tables[0].access->reuse[0] = 0.5;
  EXPECT_THAT(text(check(problem)),
              HasSubstr("tables[0].access.reuse: the shares must add up to 1, "
                        "got: 0.5"));
  problem.tables[0].access->reuse[3] = 0.499;
  EXPECT_EQ(text(check(problem)), "");
  problem.tables[0].access->rowMass = {{0.1, 0.9}, {0.2, 0.8}};
  EXPECT_THAT(text(check(problem)), HasSubstr("row_mass[1]: both shares must "
                                              "ascend"));
  problem.tables[0].access->rowMass.clear();
  problem.tables[0].access->rowsByUse = true;
  EXPECT_THAT(text(check(problem)),
              HasSubstr("tables[0].access.rows_by_use: nothing says how many "
                        "lookups the first rows get"));
  problem.tables[0].access->rowMass = {{0.1, 0.9}};
  EXPECT_EQ(text(check(problem)), "");
  problem.tables[0].hashed = true;
  EXPECT_THAT(text(check(problem)),
              HasSubstr("tables[0].access.rows_by_use: rows of a table with "
                        "hashed ids are in no order of use"));
}

TEST(CheckTest, SizesThatOverflowAreRefused) {
  ShardingProblem problem = twoTables();
  problem.tables[0].rows = int64_t{1} << 48;
  problem.tables[0].dim = 1 << 20;
  EXPECT_THAT(text(check(problem)), HasSubstr("too large to count"));
  problem = twoTables();
  problem.batch.globalSize = int64_t{1} << 31;
  problem.features[0].meanPooling = 1e6;
  EXPECT_THAT(text(check(problem)),
              HasSubstr("the batches of an update are too large"));
  problem.batch.globalSize = 1 << 16;
  EXPECT_EQ(text(check(problem)), "");
  problem.batch.backwards = 1024;
  EXPECT_THAT(text(check(problem)),
              HasSubstr("the batches of an update are too large"));
}

TEST(CheckTest, FeaturesAndOptimizers) {
  ShardingProblem problem = twoTables();
  problem.features[0].table = 9;
  problem.features[1].needsWeightGradient = true;
  problem.features[1].p99Pooling = 0.5;
  problem.tables[0].optimizer.beta1 = 1;
  problem.tables[0].optimizer.eps = -1;
  std::string errors = text(check(problem));
  EXPECT_THAT(errors, HasSubstr("features[0].table: expected the index of one "
                                "of the 2 tables, got: 9"));
  EXPECT_THAT(errors, HasSubstr("features[1].needs_weight_gradient"));
  EXPECT_THAT(errors, HasSubstr("features[1].p99_pooling: expected at least "
                                "mean_pooling x presence = 1, got: 0.5"));
  EXPECT_THAT(errors, HasSubstr("tables[0].optimizer.beta1: expected a number "
                                "in [0, 1), got: 1"));
  EXPECT_THAT(errors, HasSubstr("tables[0].optimizer.eps"));
}

TEST(CheckTest, UnsatisfiablePin) {
  ShardingProblem problem = twoTables();
  problem.constraints.pins = {{0, {1}}};
  problem.constraints.forbids = {{0, {1}}};
  EXPECT_EQ(text(check(problem)),
            "constraints: pins and forbids of table 'a' leave none of the 2 "
            "devices; relax one of them");
  problem.constraints.forbids = {};
  problem.constraints.pins = {{0, {2}}};
  EXPECT_EQ(text(check(problem)), "constraints.pins[0].devices: expected "
                                  "devices in [0, 2), got: 2");
}

TEST(CheckTest, ContradictingSets) {
  ShardingProblem problem = twoTables();
  problem.constraints.coLocate = {{0, 1}};
  problem.constraints.separate = {{1, 0}};
  EXPECT_EQ(text(check(problem)), "constraints: tables 'b' and 'a' are to be "
                                  "both co-located and separated");
  problem.constraints.separate = {{0}};
  EXPECT_THAT(text(check(problem)), HasSubstr("constraints.separate[0]: "
                                              "expected at least two tables"));
}

TEST(CheckTest, FixedShards) {
  ShardingProblem problem = twoTables();
  problem.constraints.fixedShards = {makeShard("x", "a", 0, 600, 0, 16, {0}),
                                     makeShard("y", "a", 500, 1000, 0, 8, {1})};
  EXPECT_EQ(text(check(problem)),
            "table 'a': shards 'x' (rows [0, 600) cols [0, 16)) and 'y' (rows "
            "[500, 1000) cols [0, 8)) overlap");
  problem.constraints.fixedShards = {makeShard("x", "c", 0, 1, 0, 4, {0})};
  EXPECT_EQ(text(check(problem)), "constraints.fixed_shards[0].table: unknown "
                                  "table 'c'");
  problem.constraints.fixedShards = {makeShard("x", "a", 0, 10, 0, 16, {0, 1})};
  EXPECT_EQ(text(check(problem)),
            "constraints.fixed_shards[0].devices: only a whole table can be "
            "replicated, got: rows [0, 10) cols [0, 16)");
  problem.constraints.fixedShards = {makeShard("x", "a", 0, 10, 0, 6, {5})};
  std::string errors = text(check(problem));
  EXPECT_THAT(errors, HasSubstr("inner column boundary must be a multiple of "
                                "4, got: 6"));
  EXPECT_THAT(errors, HasSubstr("devices must be in [0, 2), got: 5"));
}

TEST(CheckTest, FingerprintSeesWhatMatters) {
  ShardingProblem problem = twoTables();
  std::string before = tableFingerprint(problem.tables);
  EXPECT_EQ(before.size(), std::string("fnv1a64:").size() + 16);
  problem.tables[0].optimizer.eps = 1;
  EXPECT_EQ(tableFingerprint(problem.tables), before);
  problem.tables[0].rows += 1;
  EXPECT_NE(tableFingerprint(problem.tables), before);
}

} // namespace
