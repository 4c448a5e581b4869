//===- GpuProgramTest.cpp - GPU programs survive writing and reading ------===//
//
// Shows that the record of a GPU program that is written and read is the same.
//
//===----------------------------------------------------------------------===//

#include "RandomGpuProgram.h"

#include <gtest/gtest.h>
#include <random>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

TEST(GpuProgram, RoundTrips) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    GpuProgram program = randomGpuProgram(random);
    std::string text = writeGpuProgram(program);
    GpuProgram read = parseGpuProgram(text);
    ASSERT_EQ(writeGpuProgram(read), text);
    ASSERT_EQ(read.images.size(), 2u);
    ASSERT_EQ(read.images[0].file, program.images[0].file);
    ASSERT_EQ(read.emulated.has_value(), program.emulated.has_value());
  }
}

} // namespace
