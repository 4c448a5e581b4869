//===- RouteKernelsTest.cpp - Row moves and offsets in the emulator -------===//
//
// Runs random moves on the kernels and in plain loops: all memory must have the
// same bits afterwards. Then changes each thing that makes the kernels right,
// one at a time: every change must be noticed.
//
//===----------------------------------------------------------------------===//

#include "RoutingKernels.h"

#include "Backend/Routing.h"
#include "neuroshard/Runtime/Numerics.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::cuda;
using namespace neuroshard::runtime;

namespace {

/// Rows of small multiples of 1/8, exact in formats without scales.
void fill(Arena &arena, std::byte *to, int64_t rows, int64_t stride,
          int64_t width, WireFormat format) {
  std::vector<float> values(static_cast<size_t>(width));
  for (int64_t row = 0; row < rows; ++row) {
    for (float &value : values)
      value = static_cast<float>(arena.below(201)) / 8.0f - 12.5f;
    if (isScaled(format) && arena.below(4) == 0)
      for (float &value : values)
        value *= static_cast<float>(arena.below(3)) * 0x1p-120f;
    storeRow(values.data(), width, format,
             to + row * stride * valueBytes(format));
  }
}

std::byte *takeRows(Arena &arena, int64_t values, WireFormat format) {
  if (isScaled(format))
    return reinterpret_cast<std::byte *>(arena.take<uint8_t>(values));
  return format == WireFormat::F32
             ? reinterpret_cast<std::byte *>(arena.take<float>(values))
             : reinterpret_cast<std::byte *>(arena.take<uint16_t>(values));
}

const int64_t *takePlaces(Arena &arena, int64_t rows, int64_t firstPlace) {
  std::vector<int64_t> places(static_cast<size_t>(rows));
  std::iota(places.begin(), places.end(), firstPlace);
  for (size_t i = places.size(); i > 1; --i)
    std::swap(places[i - 1], places[arena.below(static_cast<uint32_t>(i))]);
  auto *array = arena.take<int64_t>(rows);
  std::copy(places.begin(), places.end(), array);
  return array;
}

RowMove randomMove(Arena &arena) {
  RowMove move;
  move.rows = arena.below(60);
  move.width = 1 + arena.below(arena.below(2) ? 70 : 6);
  if (arena.below(4) == 0)
    move.width = 4 * arena.below(16) + 4;
  // Half of the moves have no scales.
  uint32_t formats = arena.below(2) ? 3 : 5;
  move.sourceFormat = kWireFormats[arena.below(formats)];
  move.targetFormat =
      arena.below(2) ? move.sourceFormat : kWireFormats[arena.below(formats)];
  int64_t gap = arena.below(2) * arena.below(9);
  move.source.stride = move.width + scaleWidth(move.sourceFormat) + gap;
  move.target.stride =
      move.width + scaleWidth(move.targetFormat) + (arena.below(2) ? gap : 0);
  move.source.column = gap / 2;
  auto takeSource = [&] {
    int64_t count = move.rows * move.source.stride;
    std::byte *rows = takeRows(arena, count, move.sourceFormat);
    fill(arena, rows, move.rows, move.source.stride, move.width + gap,
         move.sourceFormat);
    return rows;
  };
  move.source.first = takeSource();
  move.target.first =
      takeRows(arena, move.rows * move.target.stride, move.targetFormat);
  move.firstPlace = arena.below(100);
  if (arena.below(3) == 0)
    move.sourcePlaces = takePlaces(arena, move.rows, move.firstPlace);
  if (arena.below(3) == 0)
    move.targetPlaces = takePlaces(arena, move.rows, move.firstPlace);
  for (uint32_t i = arena.below(2) * arena.below(4); i > 0; --i)
    move.addends.push_back(
        {takeSource(), move.source.stride, move.source.column});
  if (arena.below(3) == 0) {
    float *divisors = arena.take<float>(move.rows);
    for (int64_t i = 0; i < move.rows; ++i)
      divisors[i] = static_cast<float>(arena.below(4));
    move.divisors = divisors;
  }
  if (arena.below(3) == 0)
    move.scale = 0.3f;
  bool computes = !move.addends.empty() || move.divisors || move.scale != 1;
  if (!computes && isScaled(move.sourceFormat) &&
      move.sourceFormat == move.targetFormat)
    move.source.column = 0; // rows are copied from their scale on
  return move;
}

BagLengths randomBags(Arena &arena) {
  int64_t bags = arena.below(3) * arena.below(50);
  auto *lengths = arena.take<int32_t>(bags);
  for (int64_t i = 0; i < bags; ++i)
    // Their sum needs more than 32 bits.
    lengths[i] =
        static_cast<int32_t>(arena.below(2) ? arena.below(5) : 0x7fffffffu);
  return {lengths, arena.take<int64_t>(bags + 1), bags};
}

void addUp(const BagLengths &set) {
  set.offsets[0] = 0;
  for (int64_t i = 0; i < set.bags; ++i)
    set.offsets[i + 1] = set.offsets[i] + set.lengths[i];
}

/// The row that a list of places gives for row `i`.
int64_t placeOf(const int64_t *places, const RowMove &move, int64_t i) {
  return places ? places[i] - move.firstPlace : i;
}

void moveRow(const RowMove &move, int64_t row) {
  auto count = static_cast<size_t>(move.width);
  std::vector<float> sum(count), addend(count);
  int64_t from = placeOf(move.sourcePlaces, move, row);
  auto at = [&](const SourceRows &rows) {
    return rows.first + from * rows.stride * valueBytes(move.sourceFormat);
  };
  std::byte *to = move.target.first + placeOf(move.targetPlaces, move, row) *
                                          move.target.stride *
                                          valueBytes(move.targetFormat);
  bool computes = !move.addends.empty() || move.divisors || move.scale != 1;
  if (!computes && isScaled(move.sourceFormat) &&
      move.sourceFormat == move.targetFormat) {
    std::copy_n(at(move.source), rowBytes(move.sourceFormat, move.width), to);
    return;
  }
  auto load = [&](const SourceRows &rows, std::vector<float> &values) {
    loadRow(at(rows), rows.column, move.width, move.sourceFormat,
            values.data());
  };
  load(move.source, sum);
  for (const SourceRows &rows : move.addends) {
    load(rows, addend);
    for (size_t c = 0; c < count; ++c)
      sum[c] += addend[c];
  }
  for (float &value : sum) {
    if (move.divisors && move.divisors[row] != 0)
      value /= move.divisors[row];
    value *= move.scale;
  }
  storeRow(sum.data(), move.width, move.targetFormat, to);
}

/// Runs launches on copies of an arena in the memory of the emulated GPU.
class RouteKernels : public RoutingKernels {
public:
  using RoutingKernels::RoutingKernels;

  /// The arena after these moves and offsets; empty if a kernel has failed.
  std::vector<std::byte> run(const Arena &arena,
                             const std::vector<RowMove> &moves,
                             const std::vector<BagLengths> &bags) {
    Upload there(*this, arena);
    std::vector<RowMove> movesThere = moves;
    for (RowMove &move : movesThere) {
      move.source.first = there.at(move.source.first);
      move.target.first = there.at(move.target.first);
      move.sourcePlaces = there.at(move.sourcePlaces);
      move.targetPlaces = there.at(move.targetPlaces);
      move.divisors = there.at(move.divisors);
      for (SourceRows &addend : move.addends)
        addend.first = there.at(addend.first);
    }
    std::vector<nsg_bags> sets;
    for (const BagLengths &set : bags)
      sets.push_back(
          {there.at(set.lengths), there.at(set.offsets), set.bags, nullptr});
    bool runs =
        launch("nsg_move_rows", describeMoves(movesThere)) &&
        launch("nsg_move_scaled_rows", describeScaledMoves(movesThere)) &&
        RoutingKernels::launch("nsg_add_up",
                               ceilDivide(static_cast<int64_t>(sets.size()),
                                          NSG_THREADS / NSG_WARP),
                               upload(sets), static_cast<int32_t>(sets.size()));
    return runs ? there.download() : std::vector<std::byte>();
  }

  /// Adds up lengths in memory of the host.
  CUresult addUpHere(nsg_bags set) {
    RoutingKernels::launch("nsg_add_up", 1, upload(std::vector<nsg_bags>{set}),
                           1);
    return emulator->streamSynchronize(nullptr);
  }

private:
  bool launch(const char *kernel, MoveTable table) {
    CUdeviceptr addends = upload(table.addends);
    for (nsg_move &move : table.moves) {
      move.addends = reinterpret_cast<const nsg_rows *>(addends);
      addends += static_cast<size_t>(move.num_addends) * sizeof(nsg_rows);
    }
    return RoutingKernels::launch(kernel, table.blocks, upload(table.moves),
                                  static_cast<int32_t>(table.moves.size()));
  }
};

/// Whether the kernels do as plain loops do on the data of a seed.
bool agrees(RouteKernels &kernels, uint32_t seed) {
  Arena arena(seed);
  std::vector<RowMove> moves;
  for (uint32_t i = arena.below(12); i > 0; --i)
    moves.push_back(randomMove(arena));
  std::vector<BagLengths> bags;
  for (uint32_t i = arena.below(12); i > 0; --i)
    bags.push_back(randomBags(arena));
  std::vector<std::byte> found = kernels.run(arena, moves, bags);
  for (const RowMove &move : moves)
    for (int64_t row = 0; row < move.rows; ++row)
      moveRow(move, row);
  for (const BagLengths &set : bags)
    addUp(set);
  return found == arena.bytes;
}

constexpr uint32_t kSeeds = 40;

TEST(RouteKernelsTest, DoWhatPlainLoopsDo) {
  RouteKernels kernels(routeModule());
  for (uint32_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_TRUE(agrees(kernels, seed)) << "seed " << seed;
}

TEST(RouteKernelsTest, RaceWithNothing) {
  setenv("NEUROSHARD_EMULATOR_RACES", "1", 1);
  {
    RouteKernels kernels(routeModule());
    for (uint32_t seed = 0; seed < 5; ++seed)
      EXPECT_TRUE(agrees(kernels, seed)) << "seed " << seed;
  }
  unsetenv("NEUROSHARD_EMULATOR_RACES");
}

TEST(RouteKernelsTest, MemoryOfTheHostIsRefused) {
  setenv("NEUROSHARD_EMULATOR_OWN_MEMORY", "1", 1);
  {
    RouteKernels kernels(routeModule());
    EXPECT_TRUE(agrees(kernels, 0));
    std::vector<int64_t> offsets(2);
    int32_t length = 3;
    EXPECT_EQ(kernels.addUpHere({&length, offsets.data(), 1, nullptr}),
              CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_THAT(kernels.lastError(),
                testing::HasSubstr("4 bytes of no memory of the driver"));
  }
  unsetenv("NEUROSHARD_EMULATOR_OWN_MEMORY");
}

TEST(RouteKernelsTest, ChangesAreNoticed) {
  std::string text = routeModule();
  for (auto [from, to] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"arith.minui", "arith.maxui"}, // the last units of a move
           {"arith.divf", "arith.mulf"},
           {"arith.cmpf oeq", "arith.cmpf une"}, // bags without ids
           {"arith.addf", "arith.subf"},
           {"arith.mulf", "arith.subf"},           // the scale
           {"gpu.shuffle  idx", "gpu.shuffle up"}, // what the last lane has
           {"arith.cmpi uge", "arith.cmpi ugt"},   // lanes before this one
       }) {
    RouteKernels kernels(replaceOnce(text, from, to));
    uint32_t seed = 0;
    while (seed < kSeeds && agrees(kernels, seed))
      ++seed;
    EXPECT_LT(seed, kSeeds) << "nothing notices " << to;
  }
}

TEST(RouteKernelsTest, ChangesOfRowsWithScalesAreNoticed) {
  std::string text = routeModule();
  size_t kernel = text.find("gpu.func @nsg_move_scaled_rows");
  ASSERT_NE(kernel, std::string::npos);
  for (auto [from, to] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"arith.minui", "arith.maxui"},         // the last rows of a move
           {"arith.maxui", "arith.minui"},         // the largest of a lane
           {"gpu.shuffle  xor", "gpu.shuffle up"}, // that of the others
           {"arith.sitofp", "arith.uitofp"},       // bytes have a sign
           {"arith.mulf", "arith.addf"},
           {"arith.divf", "arith.mulf"},
           {"arith.cmpf ogt", "arith.cmpf olt"}, // rows of zeros
       }) {
    RouteKernels kernels(text.substr(0, kernel) +
                         replaceOnce(text.substr(kernel), from, to));
    uint32_t seed = 0;
    while (seed < kSeeds && agrees(kernels, seed))
      ++seed;
    EXPECT_LT(seed, kSeeds) << "nothing notices " << to;
  }
}

TEST(RouteKernelsTest, CopiesUseTheLargestUnit) {
  alignas(16) std::byte memory[4096];
  RowMove move;
  move.source = {memory, 12};
  move.target = {memory + 2048, 8};
  move.rows = 5;
  move.width = 8;
  MoveTable table = describeMoves({&move, 1});
  ASSERT_EQ(table.moves.size(), 1u);
  EXPECT_EQ(table.moves[0].unit_bytes, 16);
  EXPECT_EQ(table.moves[0].width, 2);
  EXPECT_EQ(table.moves[0].source.stride, 48);
  EXPECT_EQ(table.blocks, 1);
  move.source.first += 4;
  EXPECT_EQ(describeMoves({&move, 1}).moves[0].unit_bytes, 4);
  move.source = {memory, 8}; // in one piece
  table = describeMoves({&move, 1});
  EXPECT_EQ(table.moves[0].rows, 1);
  EXPECT_EQ(table.moves[0].width, 10);
  move.scale = 2;
  table = describeMoves({&move, 1});
  EXPECT_EQ(table.moves[0].unit_bytes, 0);
  EXPECT_EQ(table.moves[0].rows, 5);
}

TEST(RouteKernelsTest, WideRowsAreCut) {
  RowMove move;
  move.source.first = move.target.first = nullptr;
  move.rows = 1;
  move.width = int64_t{NSG_WIDEST_MOVE} * 9;
  MoveTable table = describeMoves({&move, 1});
  ASSERT_EQ(table.moves.size(), 3u); // units of four values
  EXPECT_EQ(table.moves[1].source.first,
            reinterpret_cast<const void *>(int64_t{NSG_WIDEST_MOVE} * 16));
  EXPECT_EQ(table.moves[2].width, NSG_WIDEST_MOVE / 4);
  EXPECT_EQ(table.moves[2].first_block, 2 * (NSG_WIDEST_MOVE / NSG_MOVE_UNITS));
  move.rows = 0;
  EXPECT_TRUE(describeMoves({&move, 1}).moves.empty());
}

} // namespace
