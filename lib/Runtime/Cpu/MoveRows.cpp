//===- MoveRows.cpp - Copies and sums of rows -----------------------------===//

#include "MoveRows.h"
#include "neuroshard/Runtime/Numerics.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace neuroshard::runtime {
namespace {

/// Few enough that all threads end at about the same time.
constexpr int64_t kValuesPerPiece = 1 << 15;

/// Some rows of a move, or some columns of its only row.
struct Piece {
  const RowMove *move;
  Range rows;
  Range columns;
};

void addPieces(const RowMove &move, std::vector<Piece> &pieces) {
  if (move.rows == 0 || move.width == 0)
    return;
  if (move.rows == 1) {
    int64_t count = ceilDivide(move.width, kValuesPerPiece);
    for (int64_t i = 0; i < count; ++i)
      pieces.push_back(
          {&move,
           {0, 1},
           {move.width * i / count, move.width * (i + 1) / count}});
    return;
  }
  int64_t count = std::clamp<int64_t>(move.rows * move.width / kValuesPerPiece,
                                      1, move.rows);
  for (int64_t i = 0; i < count; ++i)
    pieces.push_back({&move,
                      {move.rows * i / count, move.rows * (i + 1) / count},
                      {0, move.width}});
}

/// Runs one piece of a move.
class PieceMover {
public:
  explicit PieceMover(const Piece &piece)
      : move(*piece.move), rows(piece.rows), columns(piece.columns),
        width(columns.size()) {}

  void run() const {
    bool computes = !move.addends.empty() || move.divisors || move.scale != 1;
    if (computes || move.sourceType != move.targetType)
      compute();
    else if (!move.sourcePlaces && !move.targetPlaces &&
             move.source.stride == width && move.target.stride == width)
      copy(rows.begin, rows.size() * width);
    else
      for (int64_t row = rows.begin; row < rows.end; ++row)
        copy(row, width);
  }

private:
  const std::byte *sourceAt(const SourceRows &source, int64_t row) const {
    int64_t place =
        move.sourcePlaces ? move.sourcePlaces[row] - move.firstPlace : row;
    return source.first + (place * source.stride + columns.begin) *
                              elementBytes(move.sourceType);
  }
  std::byte *targetAt(int64_t row) const {
    int64_t place =
        move.targetPlaces ? move.targetPlaces[row] - move.firstPlace : row;
    return move.target.first + (place * move.target.stride + columns.begin) *
                                   elementBytes(move.targetType);
  }

  void copy(int64_t row, int64_t values) const {
    std::memcpy(targetAt(row), sourceAt(move.source, row),
                static_cast<size_t>(values * elementBytes(move.targetType)));
  }

  void compute() const {
    bool isRounded = move.targetType != ElementType::F32;
    std::vector<float> sum(isRounded ? static_cast<size_t>(width) : 0);
    std::vector<float> loaded(
        move.sourceType != ElementType::F32 ? static_cast<size_t>(width) : 0);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      std::byte *target = targetAt(row);
      float *values =
          isRounded ? sum.data() : reinterpret_cast<float *>(target);
      loadElements(sourceAt(move.source, row), width, move.sourceType, values);
      for (const SourceRows &addend : move.addends)
        add(sourceAt(addend, row), loaded.data(), values);
      if (move.divisors)
        divideRow(values, width, move.divisors[row]);
      if (move.scale != 1)
        for (int64_t c = 0; c < width; ++c)
          values[c] *= move.scale;
      if (isRounded)
        storeElements(values, width, move.targetType, target);
    }
  }

  void add(const std::byte *addend, float *loaded, float *values) const {
    const float *from = reinterpret_cast<const float *>(addend);
    if (move.sourceType != ElementType::F32) {
      loadElements(addend, width, move.sourceType, loaded);
      from = loaded;
    }
    for (int64_t c = 0; c < width; ++c)
      values[c] += from[c];
  }

  const RowMove &move;
  Range rows;
  Range columns;
  int64_t width;
};

} // namespace

void runMoves(std::span<const RowMove> moves, ThreadPool &threads) {
  std::vector<Piece> pieces;
  for (const RowMove &move : moves)
    addPieces(move, pieces);
  threads.parallelFor(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    PieceMover(pieces[static_cast<size_t>(i)]).run();
  });
}

} // namespace neuroshard::runtime
