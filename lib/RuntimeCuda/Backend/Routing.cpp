//===- Routing.cpp - Moves the values of an exchange on a GPU -------------===//

#include "Routing.h"
#include "Driver/Status.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <limits>

namespace neuroshard::cuda {

using namespace runtime;

namespace {

int32_t numberOf(WireFormat format) {
  switch (format) {
  case WireFormat::F32:
    return NSG_F32;
  case WireFormat::F16:
    return NSG_F16;
  case WireFormat::BF16:
    return NSG_BF16;
  case WireFormat::Int8:
    return NSG_INT8;
  case WireFormat::Fp8:
    return NSG_FP8;
  }
  return NSG_F32;
}

/// As they are read to compute.
nsg_rows valuesOf(const SourceRows &rows, WireFormat format) {
  int64_t before = scaleBytes(format) + rows.column * valueBytes(format);
  return {rows.first + before, rows.stride * valueBytes(format), before};
}

/// From where rows begin.
nsg_rows wholeRows(const std::byte *first, int64_t stride, WireFormat format) {
  return {first, stride * valueBytes(format), 0};
}

bool computes(const RowMove &move) {
  return !move.addends.empty() || move.divisors || move.scale != 1 ||
         move.sourceFormat != move.targetFormat;
}

/// Moves of nsg_move_scaled_rows.
bool computesScales(const RowMove &move) {
  return computes(move) &&
         (isScaled(move.sourceFormat) || isScaled(move.targetFormat));
}

/// The largest unit that a row has a number of, and that can be read at once
/// wherever a row begins.
int32_t unitOf(const nsg_move &move, int64_t rowBytes) {
  for (int32_t bytes : {16, 8, 4, 2})
    if (rowBytes % bytes == 0 && isMultiple(move.source.first, bytes) &&
        isMultiple(move.target.first, bytes) &&
        move.source.stride % bytes == 0 && move.target.stride % bytes == 0)
      return bytes;
  return 1;
}

/// Without its addends.
nsg_move describe(const RowMove &move) {
  nsg_move result = {};
  result.source = valuesOf(move.source, move.sourceFormat);
  result.target =
      wholeRows(move.target.first, move.target.stride, move.targetFormat);
  result.source_places = move.sourcePlaces;
  result.target_places = move.targetPlaces;
  result.first_place = move.firstPlace;
  result.divisors = move.divisors;
  result.rows = move.rows;
  result.width = move.width;
  result.num_addends = static_cast<int32_t>(move.addends.size());
  result.source_type = numberOf(move.sourceFormat);
  result.target_type = numberOf(move.targetFormat);
  result.scale = move.scale;
  if (computes(move))
    return result;
  result.source = wholeRows(
      move.source.first + move.source.column * valueBytes(move.sourceFormat),
      move.source.stride, move.sourceFormat);
  int64_t rowBytes = neuroshard::rowBytes(move.sourceFormat, move.width);
  // What lies in one piece is one row, of units as large as can be.
  bool isDense = !move.sourcePlaces && !move.targetPlaces &&
                 (move.rows == 1 || (result.source.stride == rowBytes &&
                                     result.target.stride == rowBytes));
  if (isDense) {
    rowBytes *= move.rows;
    result.rows = 1;
    result.source.stride = result.target.stride = 0;
  }
  result.unit_bytes = unitOf(result, rowBytes);
  result.width = rowBytes / result.unit_bytes;
  return result;
}

void shift(nsg_rows &rows, int64_t bytes) {
  rows.first = static_cast<const std::byte *>(rows.first) + bytes;
  rows.scale += bytes;
}

/// Adds to a table, in parts if rows are too wide for the kernel.
class MoveAdder {
public:
  MoveAdder(const RowMove &move, MoveTable &table)
      : move(move), table(table), whole(describe(move)) {}

  void add() {
    // Rows with scales are computed as a whole, of any width.
    if (computesScales(move))
      return addPart(whole, 0,
                     ceilDivide(whole.rows, int64_t{NSG_SCALED_ROWS}));
    for (int64_t column = 0; column < whole.width; column += NSG_WIDEST_MOVE)
      addColumns(column,
                 std::min<int64_t>(whole.width - column, NSG_WIDEST_MOVE));
  }

private:
  int64_t bytesOf(int64_t columns, WireFormat format) const {
    return columns * (whole.unit_bytes ? whole.unit_bytes : valueBytes(format));
  }

  void addColumns(int64_t first, int64_t width) {
    nsg_move part = whole;
    int64_t before = bytesOf(first, move.sourceFormat);
    shift(part.source, before);
    shift(part.target, bytesOf(first, move.targetFormat));
    part.width = width;
    addPart(part, before,
            ceilDivide(part.rows * width, int64_t{NSG_MOVE_UNITS}));
  }

  /// `before`: bytes of a row that are not read.
  void addPart(nsg_move part, int64_t before, int64_t blocks) {
    part.first_block = static_cast<int32_t>(table.blocks);
    table.blocks += blocks;
    table.moves.push_back(part);
    for (const SourceRows &addend : move.addends) {
      table.addends.push_back(valuesOf(addend, move.sourceFormat));
      shift(table.addends.back(), before);
    }
  }

  const RowMove &move;
  MoveTable &table;
  nsg_move whole;
};

/// Blocks with a thread for each item.
int64_t blocksOf(int64_t items) { return ceilDivide(items, NSG_THREADS); }

/// Returns the number of all blocks.
int64_t numberBlocks(std::vector<nsg_bucket> &buckets) {
  int64_t blocks = 0;
  for (nsg_bucket &bucket : buckets) {
    bucket.first_block = static_cast<int32_t>(blocks);
    blocks += blocksOf(bucket.bags * bucket.lanes);
    if (blocks > std::numeric_limits<int32_t>::max())
      fail("the ids of a batch take more blocks of a kernel than a launch may "
           "have; use smaller batches");
  }
  return blocks;
}

template <typename T>
void append(std::span<const T> values, std::vector<std::byte> &bytes) {
  auto added = std::as_bytes(values);
  bytes.insert(bytes.end(), added.begin(), added.end());
}

} // namespace

static MoveTable describe(std::span<const RowMove> moves, bool withScales) {
  MoveTable table;
  for (const RowMove &move : moves)
    if (move.rows > 0 && computesScales(move) == withScales)
      MoveAdder(move, table).add();
  return table;
}

MoveTable describeMoves(std::span<const RowMove> moves) {
  return describe(moves, false);
}

MoveTable describeScaledMoves(std::span<const RowMove> moves) {
  return describe(moves, true);
}

void Routing::moveRows(std::span<const RowMove> moves, CUstream stream) {
  launch(Kernel::MoveRows, describeMoves(moves), stream);
  launch(Kernel::MoveScaledRows, describeScaledMoves(moves), stream);
}

void Routing::launch(Kernel kernel, MoveTable table, CUstream stream) {
  if (table.moves.empty())
    return;
  auto movesBytes = static_cast<int64_t>(table.moves.size() * sizeof(nsg_move));
  auto addendsBytes =
      static_cast<int64_t>(table.addends.size() * sizeof(nsg_rows));
  CUdeviceptr moves = arguments.reserve(movesBytes + addendsBytes, stream);
  auto *addends = reinterpret_cast<const nsg_rows *>(
      moves + static_cast<CUdeviceptr>(movesBytes));
  for (nsg_move &move : table.moves) {
    move.addends = addends;
    addends += move.num_addends;
  }
  std::vector<std::byte> bytes;
  append<nsg_move>(table.moves, bytes);
  append<nsg_rows>(table.addends, bytes);
  arguments.upload(bytes, stream);
  kernels.launch(kernel, table.blocks, stream, moves,
                 static_cast<int32_t>(table.moves.size()));
}

void Routing::addUp(const std::vector<nsg_bags> &sets, CUstream stream) {
  if (sets.empty())
    return;
  auto count = static_cast<int32_t>(sets.size());
  kernels.launch(Kernel::AddUp, ceilDivide(count, NSG_THREADS / NSG_WARP),
                 stream, arguments.put(sets, stream), count);
}

void Routing::checkOffsets(const int64_t *offsets, int64_t bags,
                           uint64_t *firstBad, CUstream stream) {
  kernels.launch(Kernel::CheckOffsets, blocksOf(bags), stream, offsets, bags,
                 firstBad);
}

void Routing::trustOffsets(const JaggedInput &input, uint64_t *bad,
                           int64_t *trusted, float *sizes, CUstream stream) {
  kernels.launch(Kernel::TrustOffsets, blocksOf(input.numOffsets), stream,
                 input.offsets, input.numOffsets - 1, input.numIds, bad,
                 trusted, sizes);
}

void Routing::countBags(std::vector<nsg_bucket> &buckets, uint64_t *badId,
                        CUstream stream) {
  int64_t blocks = numberBlocks(buckets);
  if (blocks > 0)
    kernels.launch(Kernel::CountBags, blocks, stream,
                   arguments.put(buckets, stream),
                   static_cast<int32_t>(buckets.size()), badId);
}

void Routing::packIds(std::vector<nsg_bucket> &buckets, CUstream stream) {
  int64_t blocks = numberBlocks(buckets);
  if (blocks > 0)
    kernels.launch(Kernel::PackIds, blocks, stream,
                   arguments.put(buckets, stream),
                   static_cast<int32_t>(buckets.size()));
}

void Routing::addValues(const PlacedValues &values, float *out,
                        CUstream stream) {
  kernels.launch(Kernel::AddValues, blocksOf(values.count), stream, out,
                 values.values, values.places, values.first, values.count);
}

void Routing::divide(float *values, int64_t count, float divisor,
                     CUstream stream) {
  kernels.launch(Kernel::DivideValues, blocksOf(count), stream, values, count,
                 divisor);
}

} // namespace neuroshard::cuda
