//===- PackKernelsTest.cpp - Ids sorted by owner in the emulator ----------===//
//
// Packs the ids of random batches on the kernels and in plain loops: all memory
// must have the same bits afterwards. Then changes what makes the kernels
// right, one thing at a time: every change must be noticed.
//
//===----------------------------------------------------------------------===//

#include "RoutingKernels.h"

#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace neuroshard;
using namespace neuroshard::cuda;

namespace {

/// The ids of one feature of `features`, and the buckets of its lookups.
struct Batch {
  Arena arena;
  std::vector<nsg_bucket> buckets;
  std::vector<nsg_bags> sums; ///< of each bucket.
  uint64_t *words;            ///< of bad offsets and bad ids.
  const int64_t *offsets;
  int64_t bags = 0; ///< of all features.

  explicit Batch(uint32_t seed) : arena(seed) {
    words = arena.take<uint64_t>(2);
    words[0] = words[1] = ~uint64_t{0};
    isLong = arena.below(2);
    isPackedLong = arena.below(2);
    rows = 1 + arena.below(30);
    makeIds();
    int64_t lookups = 1 + arena.below(2);
    for (int64_t lookup = 0; lookup < lookups; ++lookup)
      addLookup(lookup);
  }

private:
  void makeIds() {
    features = 1 + arena.below(3);
    batch = arena.below(40);
    bags = features * batch;
    uint32_t longest = arena.below(2) ? 70 : 4;
    auto *begins = arena.take<int64_t>(bags + 1);
    begins[0] = 0;
    for (int64_t b = 0; b < bags; ++b)
      begins[b + 1] = begins[b] + arena.below(longest);
    offsets = begins;
    numIds = begins[bags];
    ids = arena.take<int64_t>(numIds);
    for (int64_t i = 0; i < numIds; ++i) {
      // Some are out of range.
      int64_t id = arena.below(200) ? arena.below(static_cast<uint32_t>(rows))
                                    : int64_t{arena.below(3)} * rows - rows;
      if (isLong)
        ids[i] = id;
      else
        reinterpret_cast<int32_t *>(ids)[i] = static_cast<int32_t>(id);
    }
    if (arena.below(8) == 0 && bags > 0) // then ids are in two bags
      begins[arena.below(static_cast<uint32_t>(bags))] = numIds + 1;
    weights = arena.take<float>(numIds);
  }

  /// Rows are cut into some buckets.
  void addLookup(int64_t lookup) {
    int64_t feature = arena.below(static_cast<uint32_t>(features));
    bool isWeighted = arena.below(2);
    bool isMean = arena.below(2);
    int64_t padding =
        arena.below(2) ? arena.below(static_cast<uint32_t>(rows)) : -1;
    int64_t begin = 0;
    while (begin < rows) {
      int64_t end = std::min<int64_t>(rows, begin + 1 + arena.below(20));
      nsg_bucket &bucket = buckets.emplace_back();
      bucket = {};
      bucket.ids = ids;
      bucket.offsets = offsets + feature * batch;
      bucket.sample_weights = isWeighted ? weights : nullptr;
      bucket.num_ids = numIds;
      bucket.bags = batch;
      bucket.row_begin = begin;
      bucket.rows = end - begin;
      bucket.padding = padding;
      bucket.checked_rows = begin == 0 ? rows : 0;
      bucket.lookup = lookup;
      bucket.lengths = arena.take<int32_t>(batch);
      bucket.bag_counts =
          isMean && begin == 0 ? arena.take<float>(batch) : nullptr;
      auto *first = arena.take<int64_t>(batch + 1);
      bucket.first = first;
      bucket.packed_ids = arena.take<int64_t>(2 * numIds);
      bucket.packed_weights =
          isWeighted ? arena.take<float>(2 * numIds) : nullptr;
      bucket.places =
          arena.below(2) ? arena.take<int64_t>(2 * numIds) : nullptr;
      bucket.flags = (isLong ? NSG_ID64 : 0) |
                     (isLong && isPackedLong ? NSG_PACKED_ID64 : 0);
      bucket.lanes = arena.below(2) ? NSG_WARP : 1;
      sums.push_back({bucket.lengths, first, batch, arena.take<int64_t>(1)});
      begin = end;
    }
  }

  bool isLong = false, isPackedLong = false;
  int64_t rows = 0, features = 0, batch = 0, numIds = 0;
  int64_t *ids = nullptr;
  float *weights = nullptr;
};

void lessen(uint64_t &word, uint64_t value) { word = std::min(word, value); }

/// The same in plain loops, in the arena itself.
void packHere(Batch &batch) {
  for (int64_t b = 0; b < batch.bags; ++b)
    if (static_cast<uint64_t>(batch.offsets[b + 1]) -
            static_cast<uint64_t>(batch.offsets[b]) >=
        uint64_t{1} << 31)
      lessen(batch.words[0], static_cast<uint64_t>(b));
  for (size_t i = 0; i < batch.buckets.size(); ++i) {
    nsg_bucket &bucket = batch.buckets[i];
    int64_t next = 0;
    for (int64_t b = 0; b < bucket.bags; ++b) {
      int64_t begin = std::clamp<int64_t>(bucket.offsets[b], 0, bucket.num_ids);
      int64_t end =
          std::min(std::max(bucket.offsets[b + 1], begin), bucket.num_ids);
      int64_t from = next, counted = 0;
      batch.sums[i].offsets[b] = from;
      for (int64_t j = begin; j < end; ++j) {
        int64_t id = bucket.flags & NSG_ID64
                         ? static_cast<const int64_t *>(bucket.ids)[j]
                         : static_cast<const int32_t *>(bucket.ids)[j];
        if (bucket.checked_rows > 0 && (id < 0 || id >= bucket.checked_rows))
          lessen(batch.words[1], static_cast<uint64_t>(bucket.lookup)
                                         << NSG_BAD_ID_POSITION_BITS |
                                     static_cast<uint64_t>(j));
        counted += id != bucket.padding;
        if (id == bucket.padding || id < bucket.row_begin ||
            id >= bucket.row_begin + bucket.rows)
          continue;
        if (bucket.flags & NSG_PACKED_ID64)
          static_cast<int64_t *>(bucket.packed_ids)[next] =
              id - bucket.row_begin;
        else
          static_cast<int32_t *>(bucket.packed_ids)[next] =
              static_cast<int32_t>(id - bucket.row_begin);
        if (bucket.packed_weights)
          bucket.packed_weights[next] = bucket.sample_weights[j];
        if (bucket.places)
          bucket.places[next] = j;
        ++next;
      }
      bucket.lengths[b] = static_cast<int32_t>(next - from);
      if (bucket.bag_counts)
        bucket.bag_counts[b] = static_cast<float>(counted);
    }
    batch.sums[i].offsets[bucket.bags] = next;
    *batch.sums[i].total = next;
  }
}

/// The arena after the kernels; empty if one has failed.
std::vector<std::byte> packThere(RoutingKernels &kernels, const Batch &batch) {
  Upload there(kernels, batch.arena);
  std::vector<nsg_bucket> buckets = batch.buckets;
  std::vector<nsg_bags> sums = batch.sums;
  int64_t blocks = 0;
  for (size_t i = 0; i < buckets.size(); ++i) {
    nsg_bucket &bucket = buckets[i];
    const nsg_bucket &from = batch.buckets[i];
    bucket.ids = there.at(static_cast<const std::byte *>(from.ids));
    bucket.offsets = there.at(from.offsets);
    bucket.sample_weights = there.at(from.sample_weights);
    bucket.lengths = there.at(from.lengths);
    bucket.bag_counts = there.at(from.bag_counts);
    bucket.first = there.at(from.first);
    bucket.packed_ids = there.at(static_cast<std::byte *>(from.packed_ids));
    bucket.packed_weights = there.at(from.packed_weights);
    bucket.places = there.at(from.places);
    bucket.first_block = static_cast<int32_t>(blocks);
    blocks += ceilDivide(bucket.bags * bucket.lanes, int64_t{NSG_THREADS});
    sums[i] = {bucket.lengths, const_cast<int64_t *>(bucket.first), bucket.bags,
               there.at(batch.sums[i].total)};
  }
  auto count = static_cast<int32_t>(buckets.size());
  uint64_t *words = there.at(batch.words);
  CUdeviceptr list = kernels.upload(buckets);
  bool runs =
      kernels.launch("nsg_check_offsets",
                     ceilDivide(batch.bags, int64_t{NSG_THREADS}),
                     there.at(batch.offsets), batch.bags, words) &&
      kernels.launch("nsg_count_bags", blocks, list, count, words + 1) &&
      kernels.launch("nsg_add_up",
                     ceilDivide(int64_t{count}, NSG_THREADS / NSG_WARP),
                     kernels.upload(sums), count) &&
      kernels.launch("nsg_pack_ids", blocks, list, count);
  return runs ? there.download() : std::vector<std::byte>();
}

bool packsAlike(RoutingKernels &kernels, uint32_t seed) {
  Batch batch(seed);
  std::vector<std::byte> found = packThere(kernels, batch);
  packHere(batch);
  return found == batch.arena.bytes;
}

constexpr uint32_t kPackSeeds = 60;

TEST(PackKernelsTest, DoWhatPlainLoopsDo) {
  RoutingKernels kernels(routeModule());
  for (uint32_t seed = 0; seed < kPackSeeds; ++seed)
    EXPECT_TRUE(packsAlike(kernels, seed)) << "seed " << seed;
}

TEST(PackKernelsTest, RaceWithNothing) {
  setenv("NEUROSHARD_EMULATOR_RACES", "1", 1);
  {
    RoutingKernels kernels(routeModule());
    for (uint32_t seed = 0; seed < 5; ++seed)
      EXPECT_TRUE(packsAlike(kernels, seed)) << "seed " << seed;
  }
  unsetenv("NEUROSHARD_EMULATOR_RACES");
}

/// The text with something changed in one kernel.
std::string changed(const std::string &text, const char *kernel,
                    std::string_view from, std::string_view to) {
  size_t begin = text.find(std::string("gpu.func @") + kernel + "(");
  EXPECT_NE(begin, std::string::npos) << kernel;
  return text.substr(0, begin) + replaceOnce(text.substr(begin), from, to);
}

TEST(PackKernelsTest, ChangesAreNoticed) {
  std::string text = routeModule();
  struct Change {
    const char *kernel, *from, *to;
  };
  for (const Change &change : {
           Change{"nsg_check_offsets", "arith.cmpi uge", "arith.cmpi sge"},
           Change{"nsg_check_offsets", "umin", "umax"},
           Change{"nsg_count_bags", "arith.maxsi", "arith.minsi"},
           Change{"nsg_count_bags", "umin", "umax"},
           Change{"nsg_count_bags", "arith.shli", "arith.shrui"},
           Change{"nsg_count_bags", "arith.cmpi ne", "arith.cmpi eq"},
           Change{"nsg_count_bags", "gpu.shuffle  idx", "gpu.shuffle up"},
           Change{"nsg_pack_ids", "arith.cmpi ne", "arith.cmpi eq"},
           Change{"nsg_pack_ids", "gpu.shuffle  up", "gpu.shuffle down"},
           Change{"nsg_pack_ids", "arith.minsi", "arith.maxsi"},
       }) {
    RoutingKernels kernels(
        changed(text, change.kernel, change.from, change.to));
    uint32_t seed = 0;
    while (seed < kPackSeeds && packsAlike(kernels, seed))
      ++seed;
    EXPECT_LT(seed, kPackSeeds)
        << "nothing notices " << change.to << " in " << change.kernel;
  }
}

/// What nsg_trust_offsets makes of offsets: the offsets, the sizes of bags, and
/// bad[1].
struct Trusted {
  std::vector<int64_t> offsets;
  std::vector<float> sizes;
  uint64_t bad;

  bool operator==(const Trusted &) const = default;
};

constexpr uint64_t kNoneBad = ~uint64_t{0};

Trusted trust(RoutingKernels &kernels, const std::vector<int64_t> &offsets,
              int64_t numIds, uint64_t firstBad = kNoneBad) {
  auto bags = static_cast<int64_t>(offsets.size()) - 1;
  Trusted result = {std::vector<int64_t>(offsets.size(), 9),
                    std::vector<float>(offsets.size() - 1, 9.0f), 0};
  std::vector<uint64_t> words = {firstBad, kNoneBad};
  CUdeviceptr bad = kernels.upload(words);
  CUdeviceptr trusted = kernels.upload(result.offsets);
  CUdeviceptr sizes = kernels.upload(result.sizes);
  CUdeviceptr given = kernels.upload(offsets);
  int64_t blocks = ceilDivide(bags + 1, int64_t{NSG_THREADS});
  EXPECT_TRUE(kernels.launch("nsg_trust_offsets", blocks, given, bags, numIds,
                             bad, trusted, sizes));
  EXPECT_TRUE(kernels.launch("nsg_trust_offsets", blocks, given, bags, numIds,
                             bad, trusted, CUdeviceptr{0}));
  kernels.emulator.download(trusted, result.offsets);
  kernels.emulator.download(sizes, result.sizes);
  kernels.emulator.download(bad, words);
  EXPECT_EQ(words[0], firstBad);
  result.bad = words[1];
  return result;
}

TEST(TrustOffsetsTest, CopiesRightOffsetsAlone) {
  RoutingKernels kernels(routeModule());
  std::vector<int64_t> offsets = {0, 2, 2, 7}, none(4, 0);
  EXPECT_EQ(trust(kernels, offsets, 7),
            (Trusted{offsets, {2, 0, 5}, kNoneBad}));
  EXPECT_EQ(trust(kernels, offsets, 7, 1),
            (Trusted{none, {0, 0, 0}, kNoneBad}));
  EXPECT_EQ(trust(kernels, offsets, 8), (Trusted{none, {0, 0, 0}, 0}));
  EXPECT_EQ(trust(kernels, {1, 2, 2, 7}, 7), (Trusted{none, {0, 0, 0}, 0}));
  EXPECT_EQ(trust(kernels, {0}, 0), (Trusted{{0}, {}, kNoneBad}));
  std::vector<int64_t> many(600);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<int64_t>(i);
  EXPECT_EQ(trust(kernels, many, 599).offsets, many);
}

TEST(AddValuesTest, AddsAtPlacesAndDivides) {
  RoutingKernels kernels(routeModule());
  std::vector<float> out(300, 1.0f), values(300);
  std::vector<int64_t> places(300);
  for (int64_t i = 0; i < 300; ++i) {
    values[static_cast<size_t>(i)] = static_cast<float>(i);
    places[static_cast<size_t>(i)] = 299 - i;
  }
  CUdeviceptr onGpu = kernels.upload(out);
  CUdeviceptr from = kernels.upload(values);
  EXPECT_TRUE(kernels.launch("nsg_add_values", 2, onGpu, from,
                             kernels.upload(places), int64_t{0}, int64_t{300}));
  EXPECT_TRUE(kernels.launch("nsg_add_values", 1, onGpu, from, CUdeviceptr{0},
                             int64_t{290}, int64_t{10}));
  EXPECT_TRUE(
      kernels.launch("nsg_divide_values", 2, onGpu, int64_t{299}, 2.0f));
  kernels.emulator.download(onGpu, out);
  EXPECT_EQ(out[0], 150.0f);
  EXPECT_EQ(out[289], 5.5f);
  EXPECT_EQ(out[295], 5.0f);
  EXPECT_EQ(out[299], 10.0f); // not divided
}

} // namespace
