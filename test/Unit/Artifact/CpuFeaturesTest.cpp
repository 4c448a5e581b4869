//===- CpuFeaturesTest.cpp - Artifacts for CPUs that are not here ---------===//
//
// Shows that an artifact whose code this CPU cannot run is refused by name, and
// what to compile it for is said.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/CpuFeatures.h"
#include "neuroshard/Artifact/Error.h"

#include <gmock/gmock.h>

using namespace neuroshard;
using testing::AllOf;
using testing::HasSubstr;

namespace {

std::string errorFor(std::vector<std::string> features) {
  Manifest manifest;
  manifest.targetCpu = "toaster";
  manifest.targetFeatures = std::move(features);
  try {
    checkCpu(manifest);
  } catch (const RuntimeError &error) {
    return error.what();
  }
  return "";
}

TEST(CpuFeatures, NothingIsNeededOfOlderArtifacts) {
  EXPECT_EQ(errorFor({}), "");
}

TEST(CpuFeatures, WhatTheCpuLacksIsNamed) {
  EXPECT_THAT(errorFor({"bread-slicing", "browning"}),
              AllOf(HasSubstr("is compiled for the CPU toaster and uses "
                              "bread-slicing, browning, which the CPU of this "
                              "machine lacks"),
                    HasSubstr("--target-cpu x86-64")));
}

TEST(CpuFeatures, SetsThatCodeDoesNotUseAreNotCounted) {
  EXPECT_TRUE(isCpuFeature("avx512f"));
  EXPECT_FALSE(isCpuFeature("sha"));
  EXPECT_FALSE(isCpuFeature("slow-3ops-lea"));
}

#if defined(__x86_64__)
TEST(CpuFeatures, WhatTheCpuHasPasses) {
  __builtin_cpu_init();
  EXPECT_EQ(errorFor({"sse3"}).empty(), __builtin_cpu_supports("sse3") != 0);
  EXPECT_EQ(errorFor({"sse4.2"}).empty(),
            __builtin_cpu_supports("sse4.2") != 0);
  EXPECT_EQ(errorFor({"avx2"}).empty(), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(errorFor({"fma"}).empty(), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(errorFor({"bmi2"}).empty(), __builtin_cpu_supports("bmi2") != 0);
  EXPECT_EQ(errorFor({"avx512f"}).empty(),
            __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(errorFor({"avx512vbmi2"}).empty(),
            __builtin_cpu_supports("avx512vbmi2") != 0);
  EXPECT_EQ(errorFor({"xop"}).empty(), __builtin_cpu_supports("xop") != 0);
  EXPECT_EQ(errorFor({"fma4"}).empty(), __builtin_cpu_supports("fma4") != 0);
}
#endif

} // namespace
