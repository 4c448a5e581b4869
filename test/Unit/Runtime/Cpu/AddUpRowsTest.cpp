//===- AddUpRowsTest.cpp - Gradients added up by row ----------------------===//
//
// Compares the loops for this processor's vectors with one that adds a value at
// a time: both give the same bits.
//
//===----------------------------------------------------------------------===//

#include "Cpu/RowSums.h"

#include <gtest/gtest.h>
#include <random>

namespace neuroshard::test {
namespace {

using namespace runtime;

/// Bags of ids of a table and the gradients of their results.
struct BagsOfIds {
  int64_t rows, dim, stride, bags;
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets;
  std::vector<float> weights, gradients;

  BagsOfIds(int64_t rows, int64_t dim, bool isPooled, std::mt19937 &random)
      : rows(rows), dim(dim), stride(dim + 5), bags(40) {
    std::uniform_real_distribution<float> values(-1, 1);
    offsets.push_back(0);
    for (int64_t b = 0; b < bags; ++b)
      offsets.push_back(offsets.back() +
                        (isPooled ? static_cast<int64_t>(random() % 7) : 1));
    for (int64_t j = 0; j < offsets.back(); ++j) {
      ids.push_back(static_cast<int32_t>(random() % rows));
      weights.push_back(values(random));
    }
    for (int64_t i = 0; i < bags * stride; ++i)
      gradients.push_back(values(random));
  }

  GradientPart part(bool isPooled, bool isWeighted) const {
    GradientPart part{};
    part.ids.ids = reinterpret_cast<const std::byte *>(ids.data());
    part.ids.weights = isWeighted ? weights.data() : nullptr;
    part.ids.offsets = isPooled ? offsets.data() : nullptr;
    part.ids.bags = bags;
    part.ids.numIds = static_cast<int64_t>(ids.size());
    part.gradients = gradients.data();
    part.stride = stride;
    part.padding = 1;
    return part;
  }

  /// Sums of all rows, then their counts.
  std::vector<float> addOneByOne(const GradientPart &part) const {
    std::vector<float> sums(static_cast<size_t>(rows * (dim + 1)));
    for (int64_t b = 0; b < bags; ++b)
      for (auto j = static_cast<size_t>(offsets[static_cast<size_t>(b)]);
           j < static_cast<size_t>(offsets[static_cast<size_t>(b) + 1]); ++j) {
        if (ids[j] == *part.padding)
          continue;
        float *sum = sums.data() + ids[j] * dim;
        for (int64_t c = 0; c < dim; ++c) {
          float gradient = gradients[static_cast<size_t>(b * stride + c)];
          volatile float product =
              part.ids.weights ? weights[j] * gradient : gradient;
          sum[c] += product;
        }
        sums[static_cast<size_t>(rows * dim + ids[j])] += 1;
      }
    return sums;
  }
};

TEST(AddUpRows, GivesTheBitsOfALoopOverValues) {
  std::mt19937 random(1);
  for (int threads : {1, 3})
    for (int64_t dim : {1, 4, 15, 16, 33, 64, 100, 128})
      for (bool isPooled : {false, true})
        for (bool isWeighted : {false, true}) {
          ThreadPool pool(threads);
          BagsOfIds batch(9, dim, isPooled, random);
          nsrt_slot_entry slot{};
          slot.dim = static_cast<decltype(slot.dim)>(dim);
          nsrt_lookup_entry lookup{};
          lookup.id_bytes = 4;
          nsrt_program program{};
          program.slots = &slot;
          program.lookups = &lookup;
          std::vector<float> sums(static_cast<size_t>(batch.rows * (dim + 1)));
          SlotSums out{0, batch.rows, sums.data(), dim,
                       sums.data() + batch.rows * dim};
          GradientPart part = batch.part(isPooled, isWeighted);
          addUpRows(program, {&part, 1}, {&out, 1}, pool);
          EXPECT_EQ(sums, batch.addOneByOne(part))
              << "threads " << threads << ", dim " << dim << ", pooled "
              << isPooled << ", weighted " << isWeighted;
        }
}

} // namespace
} // namespace neuroshard::test
