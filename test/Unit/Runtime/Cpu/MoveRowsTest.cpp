//===- MoveRowsTest.cpp - Copies and sums of rows -------------------------===//
//
// Compares moves with a loop that computes one row at a time.
//
//===----------------------------------------------------------------------===//

#include "Cpu/MoveRows.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <utility>

namespace neuroshard::test {
namespace {

using namespace runtime;

using Bytes = std::vector<std::byte>;

/// Row `i` is at row placeOf(places, i) of a matrix.
int64_t placeOf(const int64_t *places, int64_t i, int64_t firstPlace) {
  return places ? places[i] - firstPlace : i;
}

/// One row of a source.
std::vector<float> loadAt(const SourceRows &rows, int64_t place,
                          const RowMove &move) {
  std::vector<float> values(static_cast<size_t>(move.width));
  loadRow(rows.first + place * rows.stride * valueBytes(move.sourceFormat),
          rows.column, move.width, move.sourceFormat, values.data());
  return values;
}

/// Whether rows with scales travel on as they are.
bool copiesScales(const RowMove &move) {
  return isScaled(move.sourceFormat) &&
         move.sourceFormat == move.targetFormat && move.addends.empty() &&
         !move.divisors && move.scale == 1;
}

/// What a move must do, row after row.
void moveSlowly(const RowMove &move) {
  for (int64_t i = 0; i < move.rows; ++i) {
    int64_t from = placeOf(move.sourcePlaces, i, move.firstPlace);
    std::vector<float> row = loadAt(move.source, from, move);
    for (const SourceRows &addend : move.addends) {
      std::vector<float> more = loadAt(addend, from, move);
      for (size_t c = 0; c < row.size(); ++c)
        row[c] += more[c];
    }
    for (float &value : row) {
      if (move.divisors && move.divisors[i] != 0)
        value /= move.divisors[i];
      value *= move.scale;
    }
    std::byte *to = move.target.first +
                    placeOf(move.targetPlaces, i, move.firstPlace) *
                        move.target.stride * valueBytes(move.targetFormat);
    if (copiesScales(move))
      std::copy_n(move.source.first + from * move.source.stride,
                  rowBytes(move.sourceFormat, move.width), to);
    else
      storeRow(row.data(), move.width, move.targetFormat, to);
  }
}

/// Random rows, and what tells where they go.
class RandomMove {
public:
  explicit RandomMove(std::mt19937 &random) : random(random) {
    move.rows = pick(0, 40);
    move.width = pick(0, 9) == 0 ? 40000 : pick(1, 70);
    if (move.width == 40000)
      move.rows = pick(0, 2);
    move.sourceFormat = format();
    move.targetFormat = format();
    move.source = source();
    for (int64_t i = pick(0, 3); i > 0; --i)
      move.addends.push_back(source());
    if (pick(0, 1))
      move.divisors = divisorsOfRows();
    if (pick(0, 2) == 0)
      move.scale = 0.25f;
    move.firstPlace = pick(0, 5);
    if (pick(0, 2) == 0)
      move.sourcePlaces = placesOfRows();
    else if (pick(0, 1))
      move.targetPlaces = placesOfRows();
    move.target.stride =
        move.width + scaleWidth(move.targetFormat) + pick(0, 9);
    if (copiesScales(move))
      move.source.column = 0;
  }

  /// The move into a target of its own.
  RowMove into(Bytes &target) const {
    target.assign(static_cast<size_t>(move.rows * move.target.stride *
                                      valueBytes(move.targetFormat)),
                  std::byte{0x5a});
    RowMove result = move;
    result.target.first = target.data();
    return result;
  }

private:
  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }
  WireFormat format() { return kWireFormats[pick(0, 4)]; }

  SourceRows source() {
    WireFormat format = move.sourceFormat;
    int64_t column = pick(0, 2), width = column + move.width + pick(0, 3);
    int64_t stride = width + scaleWidth(format) + pick(0, 9);
    Bytes &memory = sources.emplace_back(
        static_cast<size_t>(move.rows * stride * valueBytes(format)));
    std::vector<float> values(static_cast<size_t>(width));
    for (int64_t i = 0; i < move.rows; ++i) {
      for (float &value : values)
        value = static_cast<float>(pick(-800, 800)) / 64;
      storeRow(values.data(), width, format,
               memory.data() + i * stride * valueBytes(format));
    }
    return {memory.data(), stride, column};
  }

  const float *divisorsOfRows() {
    for (int64_t i = 0; i < move.rows; ++i)
      divisors.push_back(static_cast<float>(pick(0, 5)));
    return divisors.data();
  }

  const int64_t *placesOfRows() {
    places.resize(static_cast<size_t>(move.rows));
    std::iota(places.begin(), places.end(), move.firstPlace);
    std::shuffle(places.begin(), places.end(), random);
    return places.data();
  }

  std::mt19937 &random;
  RowMove move;
  std::vector<Bytes> sources;
  std::vector<float> divisors;
  std::vector<int64_t> places;
};

TEST(MoveRows, EqualsALoopOverRows) {
  std::mt19937 random(3);
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 100; ++round) {
      SCOPED_TRACE(round);
      RandomMove first(random), second(random);
      Bytes found[2], expected[2];
      std::vector<RowMove> moves = {first.into(found[0]),
                                    second.into(found[1])};
      runMoves(moves, pool);
      moveSlowly(first.into(expected[0]));
      moveSlowly(second.into(expected[1]));
      EXPECT_EQ(found[0], expected[0]);
      EXPECT_EQ(found[1], expected[1]);
    }
  }
}

/// Rows of int8 that travel on keep their scales, without a second rounding.
TEST(MoveRows, CopiesRowsWithTheirScales) {
  std::vector<std::byte> from(3 * 9), to(3 * 7, std::byte{0x5a});
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::byte>(i);
  RowMove move;
  move.source = {from.data(), 9};
  move.target = {to.data(), 7};
  move.sourceFormat = move.targetFormat = WireFormat::Int8;
  move.rows = 3;
  move.width = 2;
  ThreadPool pool(1);
  runMoves({&move, 1}, pool);
  for (size_t row = 0; row < 3; ++row)
    for (size_t i = 0; i < 7; ++i)
      EXPECT_EQ(to[row * 7 + i], i < 6 ? from[row * 9 + i] : std::byte{0x5a});
}

/// Payloads of ids travel as values that are copied.
TEST(MoveRows, CopiesAllBits) {
  std::vector<uint32_t> from = {0x7fa00001, 0xffc12345, 0x00000001, 0x80000000};
  std::vector<uint32_t> to(from.size());
  RowMove move;
  move.source = {reinterpret_cast<const std::byte *>(from.data()), 4};
  move.target = {reinterpret_cast<std::byte *>(to.data()), 4};
  move.rows = 1;
  move.width = 4;
  ThreadPool pool(1);
  runMoves({&move, 1}, pool);
  EXPECT_EQ(to, from);
}

} // namespace
} // namespace neuroshard::test
