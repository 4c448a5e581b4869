//===- SmallSlotsTest.cpp - Slots that are updated without a sort ---------===//
//
// Their positions, pieces and sums with exact numbers, the launches for them,
// and GPU programs that describe them wrongly. Random steps are in
// StepsTest.cpp and GraphTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"
#include "Step/LookupParts.h"
#include "Step/StepTasks.h"
#include "neuroshard/Artifact/Error.h"

namespace neuroshard::test {
namespace {

using cuda::Binding;
using cuda::KeySpace;
using cuda::SmallStep;
using cuda::StepTasks;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two tables of few rows around one of many.
Model threeTables() {
  Model model;
  model.tables = {{3, 8}, {100, 4}, {64, 4}};
  model.exchanges = {{8, 3, false, {{0, 0}, {1, 1}, {2, 2}, {0, 2}}}};
  model.placeWhole();
  model.smallRows = 64;
  return model;
}

class SmallSlotsTest : public FakeTest {
protected:
  Binding bind(const Model &model) {
    Binding binding;
    binding.manifest = parseManifest(model.manifest().dump());
    binding.program = parseGpuProgram(model.program(0, fake).dump());
    checkGpuProgram(binding.program, binding.manifest, 0);
    bindMeans(binding.program, binding.manifest, 0);
    return binding;
  }

  /// Tasks of bags of one id, `counts` of each feature.
  StepTasks tasksOf(const Model &model, std::vector<int64_t> counts,
                    bool known = true) {
    Binding binding = bind(model);
    std::vector<int64_t> begins = {0};
    for (int64_t count : counts)
      begins.push_back(begins.back() + count);
    nsc_input input = {};
    input.ids = reinterpret_cast<void *>(4096);
    input.offsets = reinterpret_cast<int64_t *>(8192);
    input.feature_begin = known ? begins.data() : nullptr;
    input.num_ids = begins.back();
    input.batch = 8;
    std::vector<nsc_output> outputs(binding.numLookups());
    std::vector<cuda::Part> parts =
        cuda::makeParts(binding, std::span(&input, 1), outputs);
    std::vector<void *> weights(binding.numSlots());
    return cuda::makeTasks(binding, KeySpace(binding), parts, weights,
                           /*training=*/true, /*residentBlocks=*/1000);
  }
};

TEST_F(SmallSlotsTest, OnlySortedSlotsHaveKeys) {
  KeySpace keys(bind(threeTables()));
  EXPECT_THAT(keys.updated, ElementsAre(1));
  EXPECT_THAT(keys.small, ElementsAre(0, 2));
  EXPECT_THAT(keys.keyBegin, ElementsAre(-1, 0, -1));
  EXPECT_EQ(keys.end, 100);
  EXPECT_TRUE(keys.hasPositions(0));
}

TEST_F(SmallSlotsTest, TheirPositionsComeBehindThoseThatAreSorted) {
  // Lookups in the order of the program: t0(f0), t1(f1), t2(f2), t0(f2).
  StepTasks step = tasksOf(threeTables(), {10, 20, 300});
  EXPECT_EQ(step.numPositions, 20);
  EXPECT_EQ(step.numUnsorted, 10 + 300 + 300);
  ASSERT_EQ(step.tasks.size(), 4u);
  // Position of id 0; the ids of feature 1 begin at 10, those of 2 at 30.
  EXPECT_EQ(step.tasks[0].position_begin, 20);
  EXPECT_EQ(step.tasks[1].position_begin, -10);
  EXPECT_EQ(step.tasks[2].position_begin, 20 + 10 - 30);
  EXPECT_EQ(step.tasks[3].position_begin, 20 + 310 - 30);
  for (size_t task : {0, 2, 3})
    EXPECT_TRUE(step.tasks[task].flags & NSG_UNSORTED) << task;
  EXPECT_FALSE(step.tasks[1].flags & NSG_UNSORTED);
}

TEST_F(SmallSlotsTest, PiecesOfASlotAreNeighbours) {
  StepTasks step = tasksOf(threeTables(), {10, 20, 300});
  // Slot 0 has lookups 0 and 3: 1 piece and 2; slot 2 has 2.
  EXPECT_EQ(step.tasks[0].first_piece, 0);
  EXPECT_EQ(step.tasks[0].num_pieces, 1);
  EXPECT_EQ(step.tasks[3].first_piece, 1);
  EXPECT_EQ(step.tasks[3].num_pieces, 2);
  EXPECT_EQ(step.tasks[2].first_piece, 3);
  EXPECT_EQ(step.tasks[2].num_pieces, 2);
  EXPECT_EQ(step.tasks[1].num_pieces, 0);
  EXPECT_EQ(step.numPieces(), 5);
  // A thread for each of 4 or 65 rows of a piece, 256 to a block.
  EXPECT_THAT(step.blocks[cuda::OrderBlocks], ElementsAre(1, 0, 1, 1));
  ASSERT_EQ(step.small.size(), 2u);
  EXPECT_EQ(step.small[0].numPieces, 3);
  EXPECT_EQ(step.small[1].firstPiece, 3);
  EXPECT_EQ(step.small[1].sumRows(), 2 * 64);
}

TEST_F(SmallSlotsTest, UnknownFeaturesSharePositionsButNotPieces) {
  StepTasks step = tasksOf(threeTables(), {10, 20, 300}, /*known=*/false);
  // One layer of all ids for f0, f2 of two slots; the second lookup of slot 0
  // comes behind the first.
  EXPECT_EQ(step.numPositions, 330);
  EXPECT_EQ(step.numUnsorted, 330 * 2);
  EXPECT_EQ(step.tasks[0].num_pieces, 2);
  EXPECT_EQ(step.numPieces(), 6);
}

TEST_F(SmallSlotsTest, SumsAreBounded) {
  auto smallOf = [&](int64_t rows, int64_t ids) {
    Model model;
    model.tables = {{rows, 4}};
    model.exchanges = {{8, 1, false, {{0, 0}}}};
    model.placeWhole();
    model.smallRows = NSG_MOST_SMALL_ROWS;
    return tasksOf(model, {ids}).small.at(0);
  };
  // A piece for each sum, until there are 512 of a row or 8192 of a slot.
  for (auto [rows, ids, pieces, sums] : {std::tuple{1, 0, 1, 0},
                                         {1, 1, 1, 1},
                                         {1, 256, 1, 1},
                                         {1, 257, 1, 2},
                                         {1, 512 * 256, 1, 512},
                                         {1, 512 * 256 + 1, 2, 257},
                                         {64, 128 * 256, 1, 128},
                                         {64, 128 * 256 + 1, 2, 65},
                                         {64, 10'000'000, 306, 128},
                                         {1024, 9 * 256, 2, 5}}) {
    SmallStep small = smallOf(rows, ids);
    EXPECT_EQ(small.piecesPerSum, pieces) << rows << " rows, " << ids;
    EXPECT_EQ(small.numSums, sums) << rows << " rows, " << ids;
    EXPECT_LE(small.sumRows(), 8192);
  }
}

TEST_F(SmallSlotsTest, TooManyIdsAreRefused) {
  Model model = threeTables();
  EXPECT_NO_THROW(tasksOf(model, {1'000'000'000, 1'000'000'000, 1}));
  EXPECT_THROW(tasksOf(model, {1'100'000'000, 1'100'000'000, 1}), RuntimeError);
}

TEST_F(SmallSlotsTest, WithoutOtherSlotsNothingIsSorted) {
  Model model;
  model.tables = {{3, 8}, {9, 4}};
  model.exchanges = {{8, 2, true, {{0, 0, Bags::Sum, true}, {1, 1}}}};
  model.placeWhole();
  model.smallRows = 9;
  Simulation simulation(model, 1, /*mostBags=*/700);
  Artifact artifact(model, fake);
  OpenDevice device(artifact);
  simulation.fillTables(device, 0);
  ASSERT_EQ(nsc_set_step(device, 0.5f, 1, stream), NSC_OK);
  for (int i = 0; i < 2; ++i) {
    StepCase step = simulation.partStep(0);
    std::vector<nsc_part> parts = step.raw();
    ASSERT_EQ(nsc_forward(device, parts.data(),
                          static_cast<int32_t>(parts.size()), NSC_TRAINING,
                          stream),
              NSC_OK)
        << device.error();
    ASSERT_EQ(nsc_backward(device, step.gradients.data(),
                           static_cast<int32_t>(parts.size()), stream),
              NSC_OK)
        << device.error();
    ASSERT_EQ(nsc_check(device, stream), NSC_OK);
    simulation.update(step, 0, 0.5f);
    simulation.expectTables(device, 0);
  }
  for (const fake::Launch &launch : fake.launches)
    EXPECT_THAT(launch.kernel,
                testing::AnyOf("nsg_lookup", "nsg_expand", "nsg_small_order",
                               "nsg_small_sums", "nsg_small_update",
                               "nsg_weight_gradient"));
}

TEST_F(SmallSlotsTest, WithoutSmallSlotsTheirKernelsAreNotLaunched) {
  Model model = threeTables();
  model.smallRows = 0;
  Simulation simulation(model, 1);
  Artifact artifact(model, fake);
  OpenDevice device(artifact);
  StepCase step = simulation.partStep(0);
  std::vector<nsc_part> parts = step.raw();
  ASSERT_EQ(nsc_set_step(device, 0.5f, 1, stream), NSC_OK);
  ASSERT_EQ(nsc_forward(device, parts.data(),
                        static_cast<int32_t>(parts.size()), NSC_TRAINING,
                        stream),
            NSC_OK);
  ASSERT_EQ(nsc_backward(device, step.gradients.data(),
                         static_cast<int32_t>(parts.size()), stream),
            NSC_OK);
  ASSERT_EQ(nsc_check(device, stream), NSC_OK);
  for (const fake::Launch &launch : fake.launches)
    EXPECT_THAT(launch.kernel, testing::Not(HasSubstr("small")));
}

TEST_F(SmallSlotsTest, ProgramsThatDoNotFitAreRefused) {
  Model model = threeTables();
  auto errorOf = [&](auto change) -> std::string {
    nlohmann::json program = model.program(0, fake);
    change(program);
    try {
      GpuProgram parsed = parseGpuProgram(program.dump());
      checkGpuProgram(parsed, parseManifest(model.manifest().dump()), 0);
    } catch (const RuntimeError &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(errorOf([](auto &) {}), "");
  EXPECT_THAT(errorOf([](auto &program) {
                program["slots"][0]["small_sums_variant"] = -1;
              }),
              HasSubstr("$.slots[0].small_update_variant: expected -1, or a "
                        "small_sums_variant"));
  EXPECT_THAT(
      errorOf([](auto &program) { program["slots"][0]["update_variant"] = 0; }),
      HasSubstr("no other update"));
  EXPECT_THAT(errorOf([](auto &program) {
                program["kernels"] = {"nsg_lookup",      "nsg_expand",
                                      "nsg_ranges",      "nsg_partials",
                                      "nsg_update",      "nsg_small_sums",
                                      "nsg_small_update"};
              }),
              HasSubstr("expected \"nsg_small_order\""));
  model.tables[0].rows = NSG_MOST_SMALL_ROWS + 1;
  model.placeWhole();
  model.smallRows = NSG_MOST_SMALL_ROWS + 1;
  EXPECT_THAT(errorOf([](auto &) {}),
              HasSubstr("shard has 1025 rows, more than 1024"));
}

} // namespace
} // namespace neuroshard::test
