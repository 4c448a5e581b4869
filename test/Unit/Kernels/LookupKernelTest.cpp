//===- LookupKernelTest.cpp - Lookup kernels and a scalar loop ------------===//
//
// Forward kernels equal a scalar loop bit by bit, for every dim, element and id
// type, pooled, weighted and unpooled, and read nothing past any array;
// gradients of sample weights are exact on integers and within 4 ulp of sum|x|
// otherwise.

#include "Elements.h"
#include "GuardedArray.h"
#include "KernelGrid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

using namespace neuroshard;

namespace {

constexpr int64_t kRows = 23;
constexpr float kUntouched = 1234.5f;

/// Ids as i32 or i64, whichever the lookup reads.
class StoredIds {
public:
  StoredIds(const nsrt_lookup_entry &entry, const std::vector<int64_t> &ids)
      : isWide(entry.id_bytes == 8), wide(ids),
        narrow(std::vector<int32_t>(ids.begin(), ids.end())) {}
  void *data() { return isWide ? (void *)wide.data() : (void *)narrow.data(); }

private:
  bool isWide;
  GuardedArray<int64_t> wide;
  GuardedArray<int32_t> narrow;
};

/// Empty bags first, in the middle and last; bags shorter and longer than the
/// prefetch distance.
struct Bags {
  std::vector<int64_t> offsets{0}, ids;
  std::vector<float> sampleWeights;

  explicit Bags(Data data) {
    for (int64_t length : {0, 1, 2, 5, 40, 0, 48, 49, 3, 0})
      offsets.push_back(offsets.back() + length);
    for (int64_t i = 0; i < offsets.back(); ++i)
      ids.push_back((i * 7 + i * i) % kRows);
    sampleWeights = makeValues(ids.size(), data, 2);
  }
  int64_t size() const { return offsets.size() - 1; }
};

class LookupKernels : public testing::TestWithParam<Data> {
protected:
  const KernelGrid &grid = getKernelGrid();
};

TEST_P(LookupKernels, PooledEqualScalarLoop) {
  Bags bags(GetParam());
  for (size_t i = 0; i < grid.spec.lookups.size(); ++i) {
    const LookupSpec &lookup = grid.spec.lookups[i];
    if (!lookup.pooled)
      continue;
    const SlotSpec &slot = grid.spec.slots[lookup.slot];
    const nsrt_lookup_entry &entry = grid.program->lookups[i];
    SCOPED_TRACE("lookup " + std::to_string(i) + ", " + describe(slot));
    StoredRows weights(slot.element, slot.dim,
                       makeValues(kRows * slot.dim, GetParam(), 1));
    StoredIds ids(entry, bags.ids);
    GuardedArray<int64_t> offsets(bags.offsets);
    GuardedArray<float> sampleWeights(bags.sampleWeights);
    int64_t stride = slot.dim + 3;
    GuardedArray<float> out(
        std::vector<float>(bags.size() * stride - 3, kUntouched));

    // Two ranges: a kernel must do just the bags it is asked for.
    for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 3}, {3, 10}})
      entry.forward(weights.data(), ids.data(), offsets.data(),
                    lookup.weighted ? sampleWeights.data() : nullptr,
                    out.data(), stride, begin, end);

    std::vector<float> expected(bags.size() * stride - 3, kUntouched);
    for (int64_t bag = 0; bag < bags.size(); ++bag)
      for (int64_t column = 0; column < slot.dim; ++column) {
        float sum = 0;
        for (int64_t j = bags.offsets[bag]; j < bags.offsets[bag + 1]; ++j) {
          float term = weights.get(bags.ids[j], column);
          sum += lookup.weighted ? bags.sampleWeights[j] * term : term;
        }
        expected[bag * stride + column] = sum;
      }
    for (size_t at = 0; at < expected.size(); ++at)
      ASSERT_EQ(bitsOf(out[at]), bitsOf(expected[at]))
          << "bag " << at / stride << " column " << at % stride << ": "
          << out[at] << " instead of " << expected[at];
  }
}

TEST_P(LookupKernels, UnpooledCopyRows) {
  Bags bags(GetParam());
  int64_t numIds = bags.ids.size();
  for (size_t i = 0; i < grid.spec.lookups.size(); ++i) {
    const LookupSpec &lookup = grid.spec.lookups[i];
    if (lookup.pooled)
      continue;
    const SlotSpec &slot = grid.spec.slots[lookup.slot];
    const nsrt_lookup_entry &entry = grid.program->lookups[i];
    SCOPED_TRACE("lookup " + std::to_string(i) + ", " + describe(slot));
    StoredRows weights(slot.element, slot.dim,
                       makeValues(kRows * slot.dim, GetParam(), 3));
    StoredIds ids(entry, bags.ids);
    GuardedArray<float> out(std::vector<float>(numIds * slot.dim, kUntouched));

    entry.forward(weights.data(), ids.data(), nullptr, nullptr, out.data(),
                  slot.dim, 0, 20);
    ASSERT_EQ(out[20 * slot.dim], kUntouched) << "wrote past its range";
    entry.forward(weights.data(), ids.data(), nullptr, nullptr, out.data(),
                  slot.dim, 20, numIds);
    for (int64_t j = 0; j < numIds; ++j)
      for (int64_t column = 0; column < slot.dim; ++column)
        ASSERT_EQ(bitsOf(out[j * slot.dim + column]),
                  bitsOf(weights.get(bags.ids[j], column)))
            << "id " << j << " column " << column;
  }
}

TEST_P(LookupKernels, GradientOfSampleWeights) {
  Bags bags(GetParam());
  int64_t numIds = bags.ids.size();
  for (size_t i = 0; i < grid.spec.lookups.size(); ++i) {
    const LookupSpec &lookup = grid.spec.lookups[i];
    const nsrt_lookup_entry &entry = grid.program->lookups[i];
    ASSERT_EQ(entry.weight_gradient != nullptr, lookup.weighted);
    if (!lookup.weighted)
      continue;
    const SlotSpec &slot = grid.spec.slots[lookup.slot];
    SCOPED_TRACE("lookup " + std::to_string(i) + ", " + describe(slot));
    StoredRows weights(slot.element, slot.dim,
                       makeValues(kRows * slot.dim, GetParam(), 4));
    StoredIds ids(entry, bags.ids);
    constexpr int64_t kGradients = 11;
    GuardedArray<float> gradients(
        makeValues(kGradients * slot.dim, GetParam(), 5));
    std::vector<int64_t> starts(numIds);
    for (int64_t j = 0; j < numIds; ++j)
      starts[j] = (j * 3 % kGradients) * slot.dim;
    GuardedArray<int64_t> gradientOffsets(starts);
    GuardedArray<float> out(std::vector<float>(numIds, kUntouched));

    entry.weight_gradient(weights.data(), ids.data(), gradientOffsets.data(),
                          gradients.data(), out.data(), 0, 7);
    ASSERT_EQ(out[7], kUntouched) << "wrote past its range";
    entry.weight_gradient(weights.data(), ids.data(), gradientOffsets.data(),
                          gradients.data(), out.data(), 7, numIds);
    for (int64_t j = 0; j < numIds; ++j) {
      double expected = 0, magnitude = 0;
      for (int64_t column = 0; column < slot.dim; ++column) {
        double product = static_cast<double>(weights.get(bags.ids[j], column)) *
                         gradients[starts[j] + column];
        expected += product;
        magnitude += std::abs(product);
      }
      float sum = magnitude;
      double ulp =
          std::nextafter(sum, std::numeric_limits<float>::infinity()) - sum;
      double tolerance = GetParam() == Data::Integers ? 0 : 4 * ulp;
      ASSERT_NEAR(out[j], expected, tolerance) << "id " << j;
    }
  }
}

TEST_P(LookupKernels, EmptyRangeDoesNothing) {
  const nsrt_lookup_entry &entry = grid.program->lookups[0];
  GuardedArray<int64_t> offsets({0});
  entry.forward(nullptr, nullptr, offsets.data(), nullptr, nullptr, 1, 0, 0);
}

INSTANTIATE_TEST_SUITE_P(Values, LookupKernels,
                         testing::Values(Data::Messy, Data::Integers),
                         [](const auto &info) {
                           return info.param == Data::Messy ? "Messy"
                                                            : "Integers";
                         });

} // namespace
