//===- Shard.cpp - Weights and optimizer state of one local shard ---------===//
//
// Allocation, addressing and initial values.
//
//===----------------------------------------------------------------------===//

#include "Shard.h"
#include "neuroshard/Runtime/Initializer.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/Numerics.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>

namespace neuroshard::runtime {

namespace {

constexpr int64_t kFloatBytes = sizeof(float);

int64_t weightStride(const ShardSpec &spec, const TableSpec &table) {
  int64_t bytes = elementBytes(table.elementType);
  return nsrt_row_stride(spec.cols.size(), bytes) * bytes;
}

int64_t stateRowFloats(const ShardSpec &spec, const TableSpec &table) {
  return table.states().perRow > 0
             ? 1
             : nsrt_row_stride(spec.cols.size(), kFloatBytes);
}

int64_t numStates(const TableSpec &table) { return table.states().count(); }

} // namespace

int64_t shardBytes(const ShardSpec &spec, const TableSpec &table) {
  return spec.rows.size() *
         (weightStride(spec, table) +
          numStates(table) * stateRowFloats(spec, table) * kFloatBytes);
}

/// Zeros.
static PageBlock makeBlock(int64_t bytes,
                           const std::shared_ptr<DeviceMemory> &memory) {
  PageBlock block(bytes, memory);
  if (memory)
    memory->clear(block.data(), bytes);
  return block;
}

Shard::Shard(const ShardSpec &spec, const TableSpec &table, ThreadPool &threads,
             const std::shared_ptr<DeviceMemory> &memory)
    : shardSpec(&spec), tableSpec(&table),
      weightMemory(
          makeBlock(spec.rows.size() * weightStride(spec, table), memory)) {
  for (int64_t i = 0; i < numStates(table); ++i)
    stateMemory.push_back(makeBlock(
        spec.rows.size() * stateRowFloats(spec, table) * kFloatBytes, memory));
  if (table.trained() &&
      table.optimizer->initialAccumulator != 0) // new memory is zero
    resetState(threads);
}

float *Shard::state(size_t index) const {
  return index < stateMemory.size()
             ? reinterpret_cast<float *>(stateMemory[index].data())
             : nullptr;
}

int64_t Shard::weightStrideBytes() const {
  return weightStride(*shardSpec, *tableSpec);
}

bool Shard::hasRowState() const { return tableSpec->states().perRow > 0; }

int64_t Shard::stateWidth() const {
  return hasRowState() ? 1 : shardSpec->cols.size();
}

int64_t Shard::stateStride() const {
  return stateRowFloats(*shardSpec, *tableSpec);
}

int64_t Shard::stateBytes() const {
  int64_t bytes = 0;
  for (const PageBlock &block : stateMemory)
    bytes += block.size();
  return bytes;
}

/// `writes`: the visitor sets all values but the padding, which becomes 0.
void Shard::visit(const PageBlock &block, int64_t stride, const Range &rows,
                  bool writes, const Visitor &visitor) const {
  Range part{std::max(rows.begin, shardSpec->rows.begin),
             std::min(rows.end, shardSpec->rows.end)};
  if (part.begin >= part.end)
    return;
  std::byte *first =
      block.data() + (part.begin - shardSpec->rows.begin) * stride;
  DeviceMemory *device = block.device();
  if (!device)
    return visitor({part, first, stride});
  constexpr int64_t kCopiedBytes = int64_t{16} << 20;
  int64_t most = std::max<int64_t>(1, kCopiedBytes / stride);
  std::vector<std::byte> copy;
  for (int64_t row = part.begin; row < part.end; row += most) {
    Range some{row, std::min(row + most, part.end)};
    std::byte *source = first + (row - part.begin) * stride;
    copy.assign(static_cast<size_t>(some.size() * stride), std::byte(0));
    auto bytes = static_cast<int64_t>(copy.size());
    if (!writes)
      device->read(copy.data(), source, bytes);
    visitor({some, copy.data(), stride});
    if (writes)
      device->write(source, copy.data(), bytes);
  }
}

void Shard::readWeights(const Range &rows, const Visitor &visitor) const {
  visit(weightMemory, weightStrideBytes(), rows, /*writes=*/false, visitor);
}

void Shard::writeWeights(const Range &rows, const Visitor &visitor) {
  visit(weightMemory, weightStrideBytes(), rows, /*writes=*/true, visitor);
}

void Shard::readState(size_t index, const Range &rows,
                      const Visitor &visitor) const {
  visit(stateMemory[index], stateStride() * kFloatBytes, rows,
        /*writes=*/false, visitor);
}

void Shard::writeState(size_t index, const Range &rows,
                       const Visitor &visitor) {
  visit(stateMemory[index], stateStride() * kFloatBytes, rows, /*writes=*/true,
        visitor);
}

void Shard::resetState(ThreadPool &threads) {
  if (!tableSpec->trained())
    return;
  auto value = static_cast<float>(tableSpec->optimizer->initialAccumulator);
  for (size_t i = 0; i < stateMemory.size(); ++i)
    writeState(i, shardSpec->rows, [&](const HostRows &part) {
      forRows(threads, part.rows, [&](int64_t row) {
        std::fill_n(reinterpret_cast<float *>(part.row(row)), stateStride(),
                    value);
      });
    });
}

void Shard::touchPages(ThreadPool &threads) {
  constexpr int64_t kPageBytes = 4096, kTaskBytes = int64_t{64} << 20;
  auto touch = [&](const PageBlock &block) {
    if (block.device())
      return;
    threads.parallelFor(
        ceilDivide(block.size(), kTaskBytes), [&](int64_t task) {
          int64_t end = std::min((task + 1) * kTaskBytes, block.size());
          for (int64_t i = task * kTaskBytes; i < end; i += kPageBytes) {
            volatile std::byte &byte = block.data()[i];
            byte = byte;
          }
        });
  };
  touch(weightMemory);
  for (const PageBlock &block : stateMemory)
    touch(block);
}

void Shard::initialize(uint64_t seed, ThreadPool &threads) {
  TableInitializer initializer(*tableSpec, seed);
  int64_t dim = shardSpec->cols.size();
  writeWeights(shardSpec->rows, [&](const HostRows &part) {
    forRows(threads, part.rows, [&](int64_t row) {
      thread_local std::vector<float> values;
      values.resize(static_cast<size_t>(dim));
      for (int64_t c = 0; c < dim; ++c)
        values[static_cast<size_t>(c)] =
            initializer.value(row, shardSpec->cols.begin + c);
      storeElements(values.data(), dim, tableSpec->elementType, part.row(row));
    });
  });
  resetState(threads);
}

} // namespace neuroshard::runtime
