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
  // The scale of a row is of all its values.
  if (move.rows == 1 && !isScaled(move.sourceFormat) &&
      !isScaled(move.targetFormat)) {
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
    int64_t room = width + scaleWidth(move.sourceFormat);
    if (computes || move.sourceFormat != move.targetFormat)
      compute();
    else if (!move.sourcePlaces && !move.targetPlaces &&
             move.source.stride == room && move.target.stride == room)
      copy(rows.begin, rows.size() * room);
    else
      for (int64_t row = rows.begin; row < rows.end; ++row)
        copy(row, room);
  }

private:
  /// Where a row begins.
  const std::byte *sourceAt(const SourceRows &source, int64_t row) const {
    int64_t place =
        move.sourcePlaces ? move.sourcePlaces[row] - move.firstPlace : row;
    return source.first + place * source.stride * valueBytes(move.sourceFormat);
  }
  void load(const SourceRows &source, int64_t row, float *values) const {
    loadRow(sourceAt(source, row), source.column + columns.begin, width,
            move.sourceFormat, values);
  }
  std::byte *targetAt(int64_t row) const {
    int64_t place =
        move.targetPlaces ? move.targetPlaces[row] - move.firstPlace : row;
    return move.target.first + (place * move.target.stride + columns.begin) *
                                   valueBytes(move.targetFormat);
  }

  void copy(int64_t row, int64_t values) const {
    int64_t bytes = valueBytes(move.targetFormat);
    std::memcpy(targetAt(row),
                sourceAt(move.source, row) +
                    (move.source.column + columns.begin) * bytes,
                static_cast<size_t>(values * bytes));
  }

  void compute() const {
    bool isRounded = move.targetFormat != WireFormat::F32;
    std::vector<float> sum(isRounded ? static_cast<size_t>(width) : 0);
    std::vector<float> loaded(
        move.sourceFormat != WireFormat::F32 ? static_cast<size_t>(width) : 0);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      std::byte *target = targetAt(row);
      float *values =
          isRounded ? sum.data() : reinterpret_cast<float *>(target);
      load(move.source, row, values);
      for (const SourceRows &addend : move.addends)
        add(addend, row, loaded.data(), values);
      if (move.divisors)
        divideRow(values, width, move.divisors[row]);
      if (move.scale != 1)
        for (int64_t c = 0; c < width; ++c)
          values[c] *= move.scale;
      if (isRounded)
        storeRow(values, width, move.targetFormat, target);
    }
  }

  void add(const SourceRows &addend, int64_t row, float *loaded,
           float *values) const {
    const float *from = loaded;
    if (move.sourceFormat == WireFormat::F32)
      from = reinterpret_cast<const float *>(sourceAt(addend, row)) +
             addend.column + columns.begin;
    else
      load(addend, row, loaded);
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
