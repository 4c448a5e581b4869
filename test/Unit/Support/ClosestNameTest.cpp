//===- ClosestNameTest.cpp - Known names nearest to misspelt ones ---------===//

#include "neuroshard/Support/ClosestName.h"
#include "neuroshard/Support/OptionText.h"

#include <gtest/gtest.h>

using namespace neuroshard;

namespace {

TEST(ClosestNameTest, CountsEdits) {
  EXPECT_EQ(editDistance("", ""), 0u);
  EXPECT_EQ(editDistance("abc", ""), 3u);
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(editDistance("flaw", "lawn"), 2u);
  EXPECT_EQ(editDistance("topology", "topology"), 0u);
}

TEST(ClosestNameTest, FindsTheClosest) {
  const std::vector<std::string> names = {"topology", "target", "tiers"};
  EXPECT_EQ(closestName("topologi", names), "topology");
  EXPECT_EQ(closestName("tier", names), "tiers");
  EXPECT_EQ(closestName("colour", names), "");
  EXPECT_EQ(closestName("", names), "");
  EXPECT_EQ(closestName("tiers", {}), "");
  EXPECT_EQ(closestName(std::string(1000000, 't'), names), "");
}

TEST(ClosestNameTest, FindsWhatWasBegun) {
  const std::vector<std::string> names = {"H100", "A100-80GB", "A100-40GB"};
  EXPECT_EQ(closestName("A100", names), "A100-80GB");
  EXPECT_EQ(closestName("H10", names), "H100");
  EXPECT_EQ(closestName("A1", names), "");
}

TEST(ClosestNameTest, NamesTheOptionThatIsMeant) {
  EXPECT_EQ(unknownOptionError("plan", "<Parser>: no such option sed\n",
                               "plan{seed=0 tiers=\"a b\" x={y=1 z=2}}"),
            "'plan' has no option 'sed'; did you mean 'seed'?");
  EXPECT_EQ(unknownOptionError("plan", "<Parser>: no such option q\n", "plan"),
            "'plan' has no option 'q'; --help lists them");
  EXPECT_EQ(unknownOptionError("plan", "seed: not a number", "plan{seed=0}"),
            "seed: not a number");
}

} // namespace
