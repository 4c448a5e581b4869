//===- SplitTest.cpp - No sample on two sides -----------------------------===//

#include "neuroshard/Training/Split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace neuroshard;
using ::testing::HasSubstr;

namespace {

/// 100 samples, the first ten held out; the last twenty repeat 5 to 24.
std::vector<SampleRole> makeRoles() {
  std::vector<SampleRole> roles(100);
  for (size_t i = 0; i < 10; ++i)
    roles[i].heldOut = true;
  for (size_t i = 80; i < 100; ++i) {
    roles[i].repeatOf = static_cast<int64_t>(i) - 75;
    roles[i].heldOut = roles[static_cast<size_t>(roles[i].repeatOf)].heldOut;
  }
  return roles;
}

bool contains(const std::vector<size_t> &list, size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

TEST(Split, EverySampleIsOnOneSideAndARepeatWithItsOrigin) {
  std::vector<SampleRole> roles = makeRoles();
  auto split = splitSamples(roles, 0.2, 0, 3);
  ASSERT_TRUE(split);
  std::set<size_t> all;
  for (auto *side : {&split->training, &split->validation, &split->heldOut})
    all.insert(side->begin(), side->end());
  EXPECT_EQ(all.size(), 100u);
  EXPECT_EQ(split->training.size() + split->validation.size() +
                split->heldOut.size(),
            100u);
  EXPECT_EQ(split->heldOut.size(), 15u);
  EXPECT_NEAR(static_cast<double>(split->validation.size()), 17, 1);
  for (size_t i = 80; i < 100; ++i) {
    size_t origin = static_cast<size_t>(roles[i].repeatOf);
    for (auto *side : {&split->training, &split->validation, &split->heldOut})
      EXPECT_EQ(contains(*side, i), contains(*side, origin)) << i;
  }
}

TEST(Split, ALimitTakesTheBeginningOfTheSameOrder) {
  std::vector<SampleRole> roles(200);
  roles[0].heldOut = true;
  auto few = splitSamples(roles, 0.2, 20, 3);
  auto more = splitSamples(roles, 0.2, 40, 3);
  auto other = splitSamples(roles, 0.2, 20, 4);
  ASSERT_TRUE(few && more && other);
  EXPECT_EQ(few->validation.size(), 4u);
  EXPECT_EQ(few->training.size(), 16u);
  EXPECT_EQ(more->training.size() + more->validation.size(), 40u);
  for (size_t sample : few->training)
    EXPECT_TRUE(contains(more->training, sample) ||
                contains(more->validation, sample));
  EXPECT_NE(few->training, other->training);
}

TEST(Split, SaysWhatIsMissing) {
  std::vector<SampleRole> roles(5);
  EXPECT_THAT(toString(splitSamples(roles, 0.2, 0, 1).error()),
              HasSubstr("expected samples that are held out"));
  for (SampleRole &role : roles)
    role.heldOut = true;
  EXPECT_THAT(toString(splitSamples(roles, 0.2, 0, 1).error()),
              HasSubstr("at least 2 samples to train with, got only 0"));
}

} // namespace
