//===- StepTasksTest.cpp - Task arrays of a step's kernels ----------------===//
//
// Keys, positions, blocks and parts with exact numbers, also for tables larger
// than any test machine's memory.
//
//===----------------------------------------------------------------------===//

#include "Step/StepTasks.h"
#include "Step/LookupParts.h"
#include "TestArtifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuroshard::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Binding bind(const test::Model &model, int32_t device = 0) {
  struct Bodies : fake::State {
    CUstream makeStream() override { return nullptr; }
    void beginCapture(CUstream) override {}
    fake::Graph endCapture(CUstream) override { return {}; }
    void launchGraph(const fake::Graph &, CUstream) override {}
    void reset(unsigned) override {}
  } bodies;
  Binding binding;
  binding.manifest = parseManifest(model.manifest().dump());
  binding.device = device;
  binding.program = parseGpuProgram(model.program(device, bodies).dump());
  bindMeans(binding.program, binding.manifest, device);
  return binding;
}

/// A distinct address that is never read.
template <typename T> T *at(uintptr_t address) {
  return reinterpret_cast<T *>(address);
}

/// Two features of one input, both looked up in table 0; the first also in
/// table 1, which is cut by columns.
test::Model sharedModel() {
  test::Model model;
  model.tables = {{100, 8}, {50, 8}};
  model.exchanges = {{8, 2, false, {{0, 0}, {0, 1}, {1, 0}}}};
  model.shards = {
      {0, 0, 100, 0, 8, 0}, {1, 0, 50, 0, 4, 0}, {1, 0, 50, 4, 8, 0}};
  return model;
}

std::vector<Part> jaggedParts(const Binding &binding,
                              const int64_t *featureBegin) {
  nsc_input input = {};
  input.ids = at<void>(4096);
  input.offsets = at<int64_t>(8192);
  input.feature_begin = featureBegin;
  input.num_ids = 10;
  input.batch = 3;
  std::vector<nsc_output> outputs(binding.numLookups(),
                                  {at<void>(1 << 16), 16});
  return makeParts(binding, std::span(&input, 1), outputs);
}

StepTasks tasksOf(const Binding &binding, std::span<const Part> parts,
                  bool training = true, int64_t residentBlocks = 1000) {
  std::vector<void *> weights(binding.numSlots(), at<void>(1 << 20));
  checkParts(binding, parts, training);
  return makeTasks(binding, KeySpace(binding), parts, weights, training,
                   residentBlocks);
}

std::vector<int64_t> positionsOf(const StepTasks &step) {
  std::vector<int64_t> begins;
  for (const nsg_lookup_task &task : step.tasks)
    begins.push_back(task.position_begin);
  return begins;
}

TEST(KeySpaceTest, UpdatedSlotsHaveConsecutiveKeys) {
  test::Model model = sharedModel();
  model.tables[1].rule = test::Rule::None;
  Binding binding = bind(model);
  KeySpace keys(binding);
  EXPECT_THAT(keys.updated, ElementsAre(0));
  EXPECT_THAT(keys.keyBegin, ElementsAre(0, -1, -1));
  EXPECT_EQ(keys.end, 100);
  EXPECT_EQ(keys.keyBytes, 4);
  EXPECT_EQ(keys.endBit, 7); // 127 is the filler
}

TEST(KeySpaceTest, ReadSlotsWithWeightGradientsComeLast) {
  test::Model model = sharedModel();
  model.tables[0].rule = test::Rule::None;
  model.exchanges[0].weighted = true;
  model.exchanges[0].lookups[0].weighted = true;
  KeySpace keys(bind(model));
  EXPECT_THAT(keys.updated, ElementsAre(1, 2));
  EXPECT_THAT(keys.keyBegin, ElementsAre(100, 0, 50));
  EXPECT_EQ(keys.end, 200);
}

TEST(KeySpaceTest, KeysAreAsWideAsTheyMustBe) {
  auto of = [](std::vector<int64_t> rows) {
    test::Model model;
    test::ExchangeText exchange;
    for (int64_t count : rows) {
      exchange.lookups.push_back(
          {static_cast<int32_t>(model.tables.size()), 0});
      model.tables.push_back({count, 4});
    }
    model.exchanges = {exchange};
    model.placeWhole();
    return KeySpace(bind(model));
  };
  constexpr int64_t full = (int64_t{1} << 32) - 1;
  EXPECT_EQ(of({full - 1}).keyBytes, 4);
  EXPECT_EQ(of({full - 1}).endBit, 32);
  EXPECT_EQ(of({full}).keyBytes, 8);
  EXPECT_EQ(of({full}).endBit, 32);
  EXPECT_EQ(of({full, 1}).endBit, 33);
  EXPECT_EQ(of({127}).endBit, 7); // keys to 126, and 127 for none
  EXPECT_EQ(of({128}).endBit, 8);
  EXPECT_EQ(of({1}).endBit, 1);
  EXPECT_EQ(of({int64_t{1} << 40}).endBit, 41);
}

TEST(PositionsTest, FeaturesOfAnInputShareALayer) {
  Binding binding = bind(sharedModel());
  StepTasks step = tasksOf(binding, jaggedParts(binding, nullptr));
  // Table 0 reads both features in one layer; each column shard of table 1
  // reads the first feature again.
  EXPECT_THAT(positionsOf(step), ElementsAre(0, 0, 10, 20));
  EXPECT_EQ(step.numPositions, 30);
  EXPECT_TRUE(step.filled);
  EXPECT_THAT(step.rowsOfUpdated, ElementsAre(20, 10, 10));
}

TEST(PositionsTest, KnownFeaturesTakeTheirIdsAlone) {
  Binding binding = bind(sharedModel());
  int64_t begins[] = {0, 4, 10};
  StepTasks step = tasksOf(binding, jaggedParts(binding, begins));
  // Positions of feature 1 begin with id 4.
  EXPECT_THAT(positionsOf(step), ElementsAre(0, 4 - 4, 10, 14));
  EXPECT_EQ(step.numPositions, 10 + 4 + 4);
  EXPECT_FALSE(step.filled);
}

TEST(PositionsTest, ASlotsGradientsAreAddedInTheOrderOfItsParts) {
  // The lookup of feature 1 comes first: its ids must, too.
  test::Model model = sharedModel();
  model.exchanges[0].lookups = {{0, 1}, {0, 0}, {1, 0}};
  Binding binding = bind(model);
  StepTasks step = tasksOf(binding, jaggedParts(binding, nullptr));
  // Feature 0 of the last lookup is taken in both layers before.
  EXPECT_THAT(positionsOf(step), ElementsAre(0, 10, 0, 20));
  EXPECT_EQ(step.numPositions, 30);
}

TEST(PositionsTest, TooManyIdsAreRefused) {
  test::Model model;
  model.tables = {{100, 8}};
  model.exchanges = {{8, 1, false, {{0, 0}}}};
  model.placeWhole();
  Binding binding = bind(model);
  Part part = {};
  part.ids = at<void>(4096);
  part.id_end = part.bags = int64_t{1} << 31;
  part.pooling = 1;
  EXPECT_NO_THROW(tasksOf(binding, std::span(&part, 1), false));
  try {
    tasksOf(binding, std::span(&part, 1), true);
    FAIL() << "expected an error";
  } catch (const std::exception &error) {
    EXPECT_THAT(error.what(), HasSubstr("more than 2147483646 ids"));
  }
}

TEST(BlocksTest, TasksGetBlocksForTheirItems) {
  test::Model model = sharedModel();
  model.itemsPerBlock = 2;
  Binding binding = bind(model);
  std::vector<Part> parts = jaggedParts(binding, nullptr);
  parts[1].out = nullptr;
  parts[2].bags = 0;
  StepTasks step = tasksOf(binding, parts);
  EXPECT_THAT(step.blocks[LookupBlocks], ElementsAre(2, 0, 0, 2));
  EXPECT_THAT(step.blocks[ExpandBlocks], ElementsAre(1, 1, 0, 1));
  EXPECT_EQ(step.tasks[3].first_block, 2);
  EXPECT_EQ(step.tasks[3].first_expand_block, 2);
  EXPECT_THAT(makeTaskOfBlock(step.blocks[LookupBlocks]),
              ElementsAre(0, 0, 3, 3));
  EXPECT_THAT(tasksOf(binding, parts, false).blocks[ExpandBlocks],
              ElementsAre(0, 0, 0, 0));
}

/// Items that groups take if each of `bags` bags, or ids without bags, has
/// `pooling` ids.
int32_t itemsPerGroup(int64_t bags, int64_t pooling, int64_t residentBlocks,
                      test::Bags kind = test::Bags::Sum) {
  test::Model model;
  model.tables = {{100, 8}};
  model.exchanges = {{8, 1, false, {{0, 0, kind}}}};
  model.itemsPerBlock = 8;
  model.placeWhole();
  Binding binding = bind(model);
  Part part = {};
  part.ids = at<void>(4096);
  part.out = at<void>(4096);
  part.out_stride = 8;
  part.bags = bags;
  part.pooling = pooling;
  part.id_end = bags * pooling;
  StepTasks step = tasksOf(binding, std::span(&part, 1), false, residentBlocks);
  EXPECT_EQ(step.blocks[LookupBlocks][0],
            (bags - 1) / (8 * step.tasks[0].items_per_group) + 1);
  return step.tasks[0].items_per_group;
}

TEST(BlocksTest, GroupsTakeSeveralShortBagsOfLargeSteps) {
  // Blocks of 8 items; the square root of the waves of 10 blocks.
  EXPECT_EQ(itemsPerGroup(8 * 10 * 3, 1, 10), 1);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 4, 1, 10), 2);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 15, 1, 10), 2);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 16, 1, 10), 4);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 64, 1, 10), 8);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 4096, 1, 10), 8);
  EXPECT_EQ(itemsPerGroup(1, 0, 10), 1);
  // Not more than 16 ids together.
  EXPECT_EQ(itemsPerGroup(8 * 10 * 64, 2, 10), 8);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 64, 3, 10), 4);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 64, 8, 10), 2);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 64, 20, 10), 1);
  // Rows without bags are read four at a time.
  EXPECT_EQ(itemsPerGroup(8 * 10 * 3, 1, 10, test::Bags::None), 1);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 4, 1, 10, test::Bags::None), 4);
  EXPECT_EQ(itemsPerGroup(8 * 10 * 64, 1, 10, test::Bags::None), 8);
}

TEST(BlocksTest, IdsOfSharedInputsAreTakenToBeEvenlySpread) {
  test::Model model = sharedModel();
  model.itemsPerBlock = 1;
  Binding binding = bind(model);
  // 10 ids of two features with 3 bags each; 12 blocks, 4 waves of 3.
  StepTasks step = tasksOf(binding, jaggedParts(binding, nullptr), false, 3);
  EXPECT_EQ(step.tasks[0].items_per_group, 2);
  EXPECT_THAT(step.blocks[LookupBlocks], ElementsAre(2, 2, 2, 2));
}

TEST(WeightGradientsTest, AreThereForSumsMeansAndFixedBags) {
  test::Model model = sharedModel();
  model.exchanges[0].weighted = true;
  model.exchanges[0].lookups[0].weighted = true;
  model.exchanges[0].lookups[1].weighted = true;
  model.exchanges[0].lookups[1].bags = test::Bags::Mean;
  Binding binding = bind(model);
  std::vector<Part> parts = jaggedParts(binding, nullptr);
  for (Part &part : parts)
    part.sample_weights = at<float>(4096);
  StepTasks step = tasksOf(binding, parts);
  std::vector<nsc_gradient> gradients(parts.size());
  auto error = [&]() -> std::string {
    try {
      addWeightGradients(binding, step, parts, gradients, at<float>(64));
    } catch (const std::exception &failure) {
      return failure.what();
    }
    return "";
  };
  gradients[0].weight_gradient = at<float>(256);
  EXPECT_EQ(error(), "");
  EXPECT_EQ(step.tasks[0].weight_gradient, at<float>(256));
  EXPECT_EQ(step.tasks[0].gradients, at<float>(64));
  EXPECT_THAT(step.blocks[GradientBlocks], ElementsAre(1, 0, 0, 0));
  gradients[1].weight_gradient = at<float>(256);
  parts[0].offsets = nullptr;
  parts[0].pooling = parts[0].id_end = 0;
  step = tasksOf(binding, parts);
  EXPECT_EQ(error(), "");
  EXPECT_EQ(step.tasks[0].flags & NSG_FIXED, NSG_FIXED);
  EXPECT_EQ(step.tasks[1].flags & NSG_MEAN, NSG_MEAN);
  EXPECT_THAT(step.blocks[GradientBlocks], ElementsAre(1, 1, 0, 0));
  gradients[2].weight_gradient = at<float>(256);
  EXPECT_THAT(error(), HasSubstr("does not compute gradients"));
}

TEST(PlacesTest, GradientsAreExpectedWhereResultsAre) {
  Binding binding = bind(sharedModel());
  std::vector<Part> parts = jaggedParts(binding, nullptr);
  parts[0].out = nullptr;
  parts[1].out = at<void>(4096);
  parts[2].out = at<void>(4096 + 64);
  parts[3].out = at<void>(4096 - 32);
  EXPECT_THAT(placesOfResults(binding, parts),
              ElementsAre(GradientPlace{0, 0}, GradientPlace{0, 16},
                          GradientPlace{16, 16}, GradientPlace{-8, 16}));
}

class LookupPartsTest : public testing::Test {
protected:
  std::string error(const nsc_input &input,
                    const test::Model &model = sharedModel()) {
    Binding binding = bind(model);
    std::vector<nsc_output> outputs(binding.numLookups());
    try {
      makeParts(binding, std::span(&input, 1), outputs);
    } catch (const std::exception &failure) {
      return failure.what();
    }
    return "";
  }

  nsc_input input = {
      at<void>(4096), at<int64_t>(8192), nullptr, nullptr, 10, 3, 0};
};

TEST_F(LookupPartsTest, JaggedInputsGiveTheOffsetsOfEachFeature) {
  std::vector<Part> parts = jaggedParts(bind(sharedModel()), nullptr);
  EXPECT_EQ(parts[1].offsets, at<int64_t>(8192) + 3);
  EXPECT_EQ(parts[1].id_begin, 0);
  EXPECT_EQ(parts[1].id_end, 10);
  EXPECT_EQ(parts[1].exact, 0);
  EXPECT_EQ(parts[1].bags, 3);
}

TEST_F(LookupPartsTest, FixedInputsNeedNoOffsets) {
  input.offsets = nullptr;
  input.pooling = 2;
  input.num_ids = 12;
  Binding binding = bind(sharedModel());
  std::vector<nsc_output> outputs(4);
  std::vector<Part> parts = makeParts(binding, std::span(&input, 1), outputs);
  EXPECT_EQ(parts[1].id_begin, 6);
  EXPECT_EQ(parts[1].id_end, 12);
  EXPECT_EQ(parts[1].exact, 1);
  StepTasks step = tasksOf(binding, parts);
  EXPECT_EQ(step.tasks[1].first_id, 6);
  EXPECT_EQ(step.tasks[1].pooling, 2);
  EXPECT_EQ(step.tasks[1].flags, NSG_POOLED | NSG_FIXED | NSG_ID64);
}

TEST_F(LookupPartsTest, InputsThatAreWrongAreNamed) {
  EXPECT_EQ(error(input), "");
  nsc_input wrong = input;
  wrong.num_ids = -1;
  EXPECT_THAT(error(wrong), HasSubstr("input \"input0\": expected num_ids"));
  wrong = input;
  wrong.offsets = nullptr;
  wrong.pooling = 4;
  EXPECT_THAT(error(wrong), HasSubstr("2 features x 3 samples x 4 ids"));
  wrong = input;
  int64_t begins[] = {0, 11, 10};
  wrong.feature_begin = begins;
  EXPECT_THAT(error(wrong), HasSubstr("feature_begin[1] from 0 to 10"));
  wrong = input;
  wrong.offsets = at<int64_t>(8193);
  EXPECT_THAT(error(wrong), HasSubstr("not aligned to 8 bytes"));
}

TEST_F(LookupPartsTest, LookupsThatNeedMoreSayWhat) {
  test::Model model = sharedModel();
  model.exchanges[0].lookups[1].bags = test::Bags::None;
  EXPECT_THAT(error(input, model), HasSubstr("needs feature_begin"));
  model = sharedModel();
  model.shards = {
      {0, 0, 60, 0, 8, 0}, {0, 60, 100, 0, 8, 0}, {1, 0, 50, 0, 8, 0}};
  EXPECT_THAT(error(input, model), HasSubstr("reads a shard of rows"));
}

/// The first two parts of sharedModel(), with ids from `begin` on.
std::vector<Part> cachedParts(int64_t begin) {
  std::vector<Part> parts(2);
  for (int32_t i = 0; i < 2; ++i) {
    parts[i].lookup = i;
    parts[i].exact = 1;
    parts[i].ids = at<void>(4096);
    parts[i].offsets = at<int64_t>(8192);
    parts[i].id_begin = begin;
    parts[i].id_end = begin + 5;
    parts[i].bags = 3;
    parts[i].places = at<void>(1 << (16 + i));
  }
  return parts;
}

TEST(StepTasks, PlacesOfCachedRowsHaveThePositionsOfTheirIds) {
  Binding binding = bind(sharedModel());
  std::vector<Part> parts = cachedParts(10);
  StepTasks step = tasksOf(binding, parts);
  ASSERT_EQ(step.cachedParts.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const nsg_cached_part &part = step.cachedParts[static_cast<size_t>(i)];
    EXPECT_EQ(part.places, at<void>((1 << (16 + i)) + 10 * 8));
    EXPECT_EQ(part.id_bytes, 8);
    EXPECT_EQ(part.position_begin, 5 * i);
    EXPECT_EQ(part.position_end, 5 * i + 5);
    EXPECT_EQ(part.key_begin, step.tasks[static_cast<size_t>(i)].key_begin);
  }
  EXPECT_EQ(step.tasks[0].rows, 100);
  EXPECT_TRUE(tasksOf(binding, parts, /*training=*/false).cachedParts.empty());
  parts[0].places = nullptr;
  EXPECT_EQ(tasksOf(binding, parts).cachedParts.size(), 1u);
}

TEST(StepTasks, PlacesAsIdsMayBeBehindTheRows) {
  std::vector<Part> parts = cachedParts(0);
  parts[0].places = nullptr;
  parts[0].idsArePlaces = 1;
  StepTasks step = tasksOf(bind(sharedModel()), parts, /*training=*/false);
  EXPECT_EQ(step.tasks[0].rows, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(step.tasks[1].rows, 100);
}

TEST(KeySpace, HasKeysForPlacesBehindTheRows) {
  test::Model model = sharedModel();
  model.tables[0].rows = model.shards[0].rowEnd = (int64_t{1} << 32) - 120;
  Binding binding = bind(model);
  EXPECT_EQ(KeySpace(binding).keyBytes, 4);
  binding.manifest.shards[0].cache.rows = 128;
  KeySpace keys(binding);
  EXPECT_EQ(keys.keyBytes, 8);
  EXPECT_EQ(keys.end, model.tables[0].rows + 100);
}

} // namespace
} // namespace neuroshard::cuda
