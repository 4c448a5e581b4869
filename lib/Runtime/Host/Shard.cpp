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

constexpr int64_t kRowsPerTask = 1 << 14;

int64_t weightStride(const ShardSpec &spec, const TableSpec &table) {
  int64_t bytes = elementBytes(table.elementType);
  return nsrt_row_stride(spec.cols.size(), bytes) * bytes;
}

int64_t stateRowFloats(const ShardSpec &spec, const TableSpec &table) {
  return table.states().perRow > 0
             ? 1
             : nsrt_row_stride(spec.cols.size(), sizeof(float));
}

int64_t numStates(const TableSpec &table) { return table.states().count(); }

template <typename Function>
void forRows(ThreadPool &threads, int64_t rows, const Function &function) {
  threads.parallelFor(ceilDivide(rows, kRowsPerTask), [&](int64_t i) {
    function(i * kRowsPerTask, std::min((i + 1) * kRowsPerTask, rows));
  });
}

} // namespace

int64_t shardBytes(const ShardSpec &spec, const TableSpec &table) {
  return spec.rows.size() * (weightStride(spec, table) +
                             numStates(table) * stateRowFloats(spec, table) *
                                 static_cast<int64_t>(sizeof(float)));
}

Shard::Shard(const ShardSpec &spec, const TableSpec &table, ThreadPool &threads,
             const std::shared_ptr<MemorySource> &source)
    : shardSpec(&spec), tableSpec(&table),
      weightMemory(spec.rows.size() * weightStride(spec, table), source) {
  for (int64_t i = 0; i < numStates(table); ++i)
    stateMemory.emplace_back(spec.rows.size() * stateRowFloats(spec, table) *
                                 static_cast<int64_t>(sizeof(float)),
                             source);
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

std::byte *Shard::weightRow(int64_t tableRow) const {
  return weights() + (tableRow - shardSpec->rows.begin) * weightStrideBytes();
}

float *Shard::stateRow(size_t index, int64_t tableRow) const {
  return state(index) + (tableRow - shardSpec->rows.begin) * stateStride();
}

int64_t Shard::stateBytes() const {
  int64_t bytes = 0;
  for (const PageBlock &block : stateMemory)
    bytes += block.size();
  return bytes;
}

void Shard::resetState(ThreadPool &threads) {
  if (!tableSpec->trained())
    return;
  auto value = static_cast<float>(tableSpec->optimizer->initialAccumulator);
  for (const PageBlock &block : stateMemory) {
    auto *values = reinterpret_cast<float *>(block.data());
    forRows(threads, shardSpec->rows.size(), [&](int64_t begin, int64_t end) {
      std::fill(values + begin * stateStride(), values + end * stateStride(),
                value);
    });
  }
}

void Shard::touchPages(ThreadPool &threads) {
  constexpr int64_t kPageBytes = 4096, kTaskBytes = int64_t{64} << 20;
  auto touch = [&](const PageBlock &block) {
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
  forRows(threads, shardSpec->rows.size(), [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(dim));
    for (int64_t r = begin; r < end; ++r) {
      int64_t tableRow = shardSpec->rows.begin + r;
      for (int64_t c = 0; c < dim; ++c)
        row[static_cast<size_t>(c)] =
            initializer.value(tableRow, shardSpec->cols.begin + c);
      storeElements(row.data(), dim, tableSpec->elementType,
                    weightRow(tableRow));
    }
  });
  resetState(threads);
}

} // namespace neuroshard::runtime
