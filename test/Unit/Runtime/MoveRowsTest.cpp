//===- MoveRowsTest.cpp - Copies and sums of rows -------------------------===//
//
// Compares moves with a loop that computes one value at a time.
//
//===----------------------------------------------------------------------===//

#include "Cpu/MoveRows.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <utility>

using neuroshard::ElementType;
using namespace neuroshard::runtime;

namespace {

using Bytes = std::vector<std::byte>;

float loadAt(const std::byte *first, int64_t index, ElementType type) {
  float value;
  loadElements(first + index * elementBytes(type), 1, type, &value);
  return value;
}

/// Row `i` is at row placeOf(places, i) of a matrix.
int64_t placeOf(const int64_t *places, int64_t i, int64_t firstPlace) {
  return places ? places[i] - firstPlace : i;
}

/// What a move must do, one value at a time.
void moveSlowly(const RowMove &move) {
  std::vector<SourceRows> sources = {move.source};
  sources.insert(sources.end(), move.addends.begin(), move.addends.end());
  for (int64_t i = 0; i < move.rows; ++i)
    for (int64_t c = 0; c < move.width; ++c) {
      int64_t from = placeOf(move.sourcePlaces, i, move.firstPlace);
      float sum = loadAt(sources[0].first, from * sources[0].stride + c,
                         move.sourceType);
      for (size_t s = 1; s < sources.size(); ++s)
        sum += loadAt(sources[s].first, from * sources[s].stride + c,
                      move.sourceType);
      if (move.divisors && move.divisors[i] != 0)
        sum /= move.divisors[i];
      sum *= move.scale;
      int64_t to = placeOf(move.targetPlaces, i, move.firstPlace);
      storeElements(&sum, 1, move.targetType,
                    move.target.first + (to * move.target.stride + c) *
                                            elementBytes(move.targetType));
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
    move.sourceType = type();
    move.targetType = type();
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
    move.target.stride = move.width + pick(0, 9);
  }

  /// The move into a target of its own.
  RowMove into(Bytes &target) const {
    target.assign(static_cast<size_t>(move.rows * move.target.stride *
                                      elementBytes(move.targetType)),
                  std::byte{0x5a});
    RowMove result = move;
    result.target.first = target.data();
    return result;
  }

private:
  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }
  ElementType type() { return static_cast<ElementType>(pick(0, 2)); }

  SourceRows source() {
    int64_t stride = move.width + pick(0, 9);
    int64_t count = move.rows * stride;
    Bytes &memory = sources.emplace_back(
        static_cast<size_t>(count * elementBytes(move.sourceType)));
    for (int64_t i = 0; i < count; ++i) {
      float value = static_cast<float>(pick(-800, 800)) / 64;
      storeElements(&value, 1, move.sourceType,
                    memory.data() + i * elementBytes(move.sourceType));
    }
    return {memory.data(), stride};
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

TEST(MoveRows, EqualsALoopOverValues) {
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
