//===- MistakesTest.cpp - Bad ids and wrong calls -------------------------===//
//
// Each mistake in the steps of the C interface has one message that names it.
//
//===----------------------------------------------------------------------===//

#include "DeviceFixture.h"

namespace neuroshard::test {
namespace {

using testing::HasSubstr;

class BadIdTest : public DeviceTest {
protected:
  BadIdTest() {
    ids.emplace_back(std::vector<int64_t>{0, 1, 2, 3});
    out.emplace_back(size_t{64});
    part.lookup = 1; // rows 0 ... 4 of t1
    part.ids = ids[0].data();
    part.pooling = 2;
    part.bags = 2;
    part.id_end = 4;
    part.out = out[0].data();
    part.out_stride = 4;
  }

  nsc_status run(nsc_device *device, int32_t parts = 1) {
    EXPECT_EQ(nsc_forward(device, &part, parts, NSC_INFERENCE, stream), NSC_OK)
        << nsc_last_error(device);
    return nsc_check(device, stream);
  }

  std::vector<DeviceArray<int64_t>> ids;
  std::vector<DeviceArray<float>> out;
  nsc_part part = {};
};

TEST_F(BadIdTest, NamesTableFeaturePositionAndId) {
  OpenDevice device(artifact);
  EXPECT_EQ(run(device), NSC_OK);
  ids[0][2] = 5;
  ids[0][3] = -1;
  EXPECT_EQ(run(device), NSC_BAD_ID);
  EXPECT_THAT(device.error(),
              testing::AllOf(HasSubstr("id 5 at position 2 of the ids"),
                             HasSubstr("table \"t1\", feature \"f1\""),
                             testing::Not(HasSubstr("input")), // its only one
                             HasSubstr("expected rows from 0 to 4")));
  EXPECT_EQ(nsc_check(device, stream), NSC_OK); // reported once
  ids[0][2] = 0;
  EXPECT_EQ(run(device), NSC_BAD_ID);
  EXPECT_THAT(device.error(), HasSubstr("id -1 at position 3"));
  ids[0][3] = 0;
  EXPECT_EQ(run(device), NSC_OK);
}

TEST_F(BadIdTest, IsKeptWhenThePlanServesOthers) {
  OpenDevice device(artifact);
  ids[0][1] = 99;
  ASSERT_EQ(nsc_forward(device, &part, 1, NSC_INFERENCE, stream), NSC_OK);
  // Other lookups take over all plans, one after the other.
  part.lookup = 0;
  part.out_stride = 8;
  for (int i = 0; i < 12; ++i) {
    ids.emplace_back(std::vector<int64_t>{0, 1, 2, 3});
    part.ids = ids.back().data();
    ASSERT_EQ(nsc_forward(device, &part, 1, NSC_INFERENCE, stream), NSC_OK);
  }
  EXPECT_EQ(nsc_check(device, stream), NSC_BAD_ID);
  EXPECT_THAT(device.error(), HasSubstr("id 99 at position 1"));
  EXPECT_THAT(device.error(), HasSubstr("table \"t1\""));
  EXPECT_EQ(nsc_check(device, stream), NSC_OK);
}

TEST_F(BadIdTest, SaysIfTheIdIsGone) {
  OpenDevice device(artifact);
  ids[0][1] = 99;
  ASSERT_EQ(nsc_forward(device, &part, 1, NSC_INFERENCE, stream), NSC_OK);
  theDriver().ctxSynchronize();
  ids[0][1] = 2;
  EXPECT_EQ(nsc_check(device, stream), NSC_BAD_ID);
  EXPECT_THAT(device.error(), HasSubstr("overwritten"));
  EXPECT_THAT(device.error(), HasSubstr("position 1"));
}

class MistakeTest : public BadIdTest {
protected:
  /// Expects one message for a part that `change` has made wrong.
  template <typename Change>
  void refuse(nsc_device *device, const char *message, Change change,
              int32_t training = NSC_INFERENCE) {
    nsc_part wrong = part;
    change(wrong);
    EXPECT_EQ(nsc_forward(device, &wrong, 1, training, stream), NSC_ERROR)
        << message;
    EXPECT_THAT(nsc_last_error(device), HasSubstr(message));
  }
};

TEST_F(MistakeTest, PartsThatKernelsCannotRunAreRefused) {
  OpenDevice device(artifact);
  refuse(device, "there is no lookup 3", [](auto &p) { p.lookup = 3; });
  refuse(device, "ids is null", [](auto &p) { p.ids = nullptr; });
  refuse(device, "ids is not aligned to its 8 bytes",
         [](auto &p) { p.ids = static_cast<const char *>(p.ids) + 4; });
  refuse(device, "[id_begin, id_end) is [0, -1)",
         [](auto &p) { p.id_end = -1; });
  refuse(device, "must be 2 bags x 3 ids, found 4",
         [](auto &p) { p.pooling = 3; });
  refuse(device, "expected a number of bags", [](auto &p) { p.bags = -1; });
  refuse(device, "out is not aligned to 4 bytes",
         [](auto &p) { p.out = static_cast<char *>(p.out) + 2; });
  refuse(device, "expected out_stride to be at least 2",
         [](auto &p) { p.out_stride = 1; });
  refuse(device, "out is not aligned to 16 bytes", [](auto &p) {
    p.lookup = 0;
    p.out = static_cast<char *>(p.out) + 4;
  });
  refuse(device, "a multiple of 4, found 9", [](auto &p) {
    p.lookup = 0;
    p.out_stride = 9;
  });
  refuse(device, "expected training to be 0, 1 or 2", [](auto &) {}, 3);
  EXPECT_EQ(nsc_forward(device, nullptr, 1, 0, stream), NSC_ERROR);
  EXPECT_EQ(nsc_forward(nullptr, &part, 1, 0, stream), NSC_ERROR);
  EXPECT_STREQ(nsc_last_error(nullptr), "the device is null");
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(MistakeTest, CallsOutOfOrderAreRefused) {
  OpenDevice device(artifact);
  nsc_gradient gradient = {out[0].data(), 4, nullptr};
  auto refuseBackward = [&](int32_t count, const char *message) {
    EXPECT_EQ(nsc_backward(device, &gradient, count, stream), NSC_ERROR);
    EXPECT_THAT(device.error(), HasSubstr(message));
  };
  refuseBackward(1, "nsc_backward comes after an nsc_forward with training");
  EXPECT_EQ(nsc_backward_apply(device, stream), NSC_ERROR);
  EXPECT_EQ(nsc_forward(device, &part, 1, NSC_TRAINING, stream), NSC_OK)
      << device.error();
  refuseBackward(1, "the learning rate is not set");
  EXPECT_EQ(nsc_set_step(device, 1.0f / 0.0f, 1, stream), NSC_ERROR);
  EXPECT_EQ(nsc_set_step(device, 0.5f, 1, stream), NSC_OK);
  refuseBackward(2, "expected 1 gradients");
  gradient.gradient = nullptr;
  refuseBackward(1, "its gradient is null");
  gradient.gradient = out[0].data();
  gradient.weight_gradient = out[0].data();
  refuseBackward(1, "does not compute gradients of its sample weights");
  gradient.weight_gradient = nullptr;
  nsc_norms norms;
  EXPECT_EQ(nsc_get_norms(device, 1, &norms), NSC_ERROR);
  EXPECT_EQ(nsc_backward(device, &gradient, 1, stream), NSC_OK)
      << device.error();
  EXPECT_EQ(nsc_get_norms(device, 0, &norms), NSC_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("slot 0 has no norms"));
  ASSERT_EQ(nsc_get_norms(device, 1, &norms), NSC_OK) << device.error();
  theDriver().ctxSynchronize();
  EXPECT_EQ(norms.capacity, 4);
  EXPECT_EQ(norms.run_range[0], 0);
  EXPECT_EQ(norms.run_range[1], 4); // rows 0 ... 3
  refuseBackward(1, "once");
  EXPECT_EQ(nsc_backward_apply(device, stream), NSC_OK);
  EXPECT_EQ(nsc_backward_apply(device, stream), NSC_ERROR);
}

TEST_F(BadIdTest, PlansAreNotUsedAgainWhileTheirSortRuns) {
  // Twelve sorts wait while the caller's stream goes ahead. The first have more
  // blocks than the last, which use their plans again.
  std::vector<int64_t> rows(80, 3);
  DeviceArray<int64_t> many(rows);
  DeviceArray<float> results(size_t{40} * 4);
  OpenDevice device(artifact);
  fake.preferred = stream;
  for (int i = 0; i < 12; ++i) {
    part.bags = 40 - 3 * i;
    part.ids = many.data();
    part.id_end = 2 * part.bags;
    part.out = results.data();
    ASSERT_EQ(nsc_forward(device, &part, 1, NSC_TRAINING, stream), NSC_OK)
        << device.error();
  }
  EXPECT_EQ(nsc_check(device, stream), NSC_OK);
  theDriver().ctxSynchronize();
  EXPECT_THAT(fake.violations, testing::IsEmpty());
}

TEST_F(MistakeTest, NothingToDoIsDone) {
  Model model;
  model.tables = {{6, 8}};
  model.exchanges = {{8, 1, false, {{0, 0}}}};
  model.shards = {{0, 0, 6, 0, 8, 1}};
  model.devices = 2; // the first has nothing
  Artifact two(model, fake);
  part.lookup = 0;
  part.bags = part.id_end = 0;
  part.ids = nullptr;
  nsc_gradient gradient = {};
  for (int32_t d = 0; d < 2; ++d) {
    OpenDevice device(two, d);
    ASSERT_EQ(nsc_set_step(device, 0.5f, 1, stream), NSC_OK);
    for (int32_t training : {0, 1, 2})
      EXPECT_EQ(nsc_forward(device, &part, d, training, stream), NSC_OK)
          << device.error();
    EXPECT_EQ(nsc_backward(device, &gradient, d, stream), NSC_OK)
        << device.error();
    EXPECT_EQ(nsc_backward_apply(device, stream), NSC_OK);
    EXPECT_EQ(nsc_check(device, stream), NSC_OK) << device.error();
  }
}

} // namespace
} // namespace neuroshard::test
