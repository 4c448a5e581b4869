//===- FiguresTest.cpp - Memory, time and bytes of a device ---------------===//
//
// Shows that memory counts the padding of rows, and phases the bytes sent.
//
//===----------------------------------------------------------------------===//

#include "TestModels.h"

#include <gtest/gtest.h>

using namespace neuroshard::test;

namespace {

TEST(Figures, MemoryCountsPadding) {
  Model model = makeModel(Optimizer::Adam);
  TestWorld world(model, makePlan(model, PlanKind::TableWise, 1), 1);
  nsrt_device *device = nsrt_world_device(world.get(), 0);
  // Rows: 10 f32 in 48 bytes, 8 f16 in 16, 5 bf16 in 16, 12 f32 in 48.
  EXPECT_EQ(nsrt_device_memory_bytes(device, NSRT_MEMORY_WEIGHTS),
            37 * 48 + 23 * 16 + 11 * 16 + 64 * 48);
  // Two f32 arrays, rows of 12, 8, 8 and 12 values.
  EXPECT_EQ(nsrt_device_memory_bytes(device, NSRT_MEMORY_STATE),
            2 * 4 * (37 * 12 + 23 * 8 + 11 * 8 + 64 * 12));
}

TEST(Figures, PhasesAndBytes) {
  Model model = makeModel(Optimizer::None);
  model.tables = {{"t", 10, 4, Element::F32}};
  model.exchanges = {{8, false, 1, {{0, 0}}}};
  std::vector<ShardPlace> shards = {{0, 0, 10, 0, 4, {1}}};
  TestWorld world(model, shards, 2);
  Oracle oracle(model);
  DataMaker maker(model, Data::Reals, 1);
  std::vector<Batch> batches = maker.batches({6});
  int64_t ids = 0;
  for (int64_t b = 0; b < 3; ++b)
    ids +=
        static_cast<int64_t>(batches[0].ids[0][static_cast<size_t>(b)].size());
  StepResult result;
  ASSERT_TRUE(world.forward(batches, result));
  nsrt_device *sender = nsrt_world_device(world.get(), 0);
  nsrt_device *owner = nsrt_world_device(world.get(), 1);
  auto phase = [](const std::string &name) {
    for (int32_t i = 0; i < nsrt_num_phases(); ++i)
      if (name == nsrt_phase_name(i))
        return i;
    return -1;
  };
  // Rank 0 sends the lengths of its 3 bags (padded to 16 bytes) and its ids,
  // rank 1 sends 3 rows of 4 floats back.
  EXPECT_EQ(nsrt_device_phase_bytes(sender, phase("ids_exchange")),
            16 + 4 * ids);
  EXPECT_EQ(nsrt_device_phase_bytes(owner, phase("ids_exchange")), 0);
  EXPECT_EQ(nsrt_device_phase_bytes(owner, phase("results_exchange")), 48);
  EXPECT_EQ(nsrt_device_phase_bytes(sender, phase("results_exchange")), 0);
  EXPECT_GT(nsrt_device_phase_ms(owner, phase("lookup")), 0);
  nsrt_device_reset_phases(owner);
  EXPECT_EQ(nsrt_device_phase_ms(owner, phase("lookup")), 0);
  EXPECT_EQ(nsrt_phase_name(nsrt_num_phases()), nullptr);
}

} // namespace
