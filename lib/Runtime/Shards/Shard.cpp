//===- Shard.cpp - Weights and optimizer state of one local shard ---------===//
//
// Allocation, addressing and initial values.
//
//===----------------------------------------------------------------------===//

#include "Shard.h"
#include "RowFile.h"
#include "RowMemory.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/Initializer.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/Numerics.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>

namespace neuroshard::runtime {

namespace {

constexpr int64_t kFloatBytes = sizeof(float);

int64_t weightStride(const ShardSpec &spec, const TableSpec &table) {
  return paddedRowBytes(spec.cols.size(), table.elementType);
}

int64_t stateRowFloats(const ShardSpec &spec, const TableSpec &table,
                       int64_t index) {
  return table.states().isPerRow(index)
             ? 1
             : nsrt_row_stride(spec.cols.size(), kFloatBytes);
}

int64_t numStates(const TableSpec &table) { return table.states().count(); }

} // namespace

int64_t shardBytes(const ShardSpec &spec, const TableSpec &table) {
  if (spec.hasRowCache())
    return spec.cache.rows *
           cachedRowBytes(table.states(), spec.cols.size(), table.elementType);
  int64_t rowBytes = weightStride(spec, table);
  for (int64_t i = 0; i < numStates(table); ++i)
    rowBytes += stateRowFloats(spec, table, i) * kFloatBytes;
  return spec.rows.size() * rowBytes;
}

/// Zeros.
static PageBlock makeBlock(int64_t bytes,
                           const std::shared_ptr<DeviceMemory> &memory) {
  PageBlock block(bytes, memory);
  if (memory)
    memory->clear(block.data(), bytes);
  return block;
}

static std::unique_ptr<RowStore> makeStore(const ShardSpec &spec,
                                           const TableSpec &table,
                                           const ShardPlaces &places) {
  int64_t rows = spec.rows.size();
  int64_t bytes =
      recordBytes(table.states(), spec.cols.size(), table.elementType);
  if (spec.tier == Tier::Dram && !places.memory)
    fail("shard \"", spec.name,
         "\" is in tier dram, which is for GPUs: the memory of CPUs is that of "
         "their host");
  if (spec.tier == Tier::Dram)
    return std::make_unique<RowMemory>(rows, bytes);
  if (places.directory.empty())
    fail("shard \"", spec.name,
         "\" is in tier ssd and needs a directory for its file: pass "
         "tier_directory (neuroshard-run: --tier-dir), or set "
         "NEUROSHARD_TIER_DIRECTORY");
  return std::make_unique<RowFile>(places.directory, spec.name, rows, bytes);
}

Shard::Shard(const ShardSpec &spec, const TableSpec &table,
             const ShardPlaces &places)
    : shardSpec(&spec), tableSpec(&table) {
  if (spec.hasRowCache()) {
    cached = std::make_unique<RowCache>(
        spec, table, makeStore(spec, table, places), *places.io, places.memory);
  } else {
    auto make = [&](int64_t rowBytes) {
      return makeBlock(spec.rows.size() * rowBytes, places.memory);
    };
    weightMemory = make(weightStride(spec, table));
    for (int64_t i = 0; i < numStates(table); ++i)
      stateMemory.push_back(make(stateRowFloats(spec, table, i) * kFloatBytes));
  }
  if (table.trained() &&
      initialState(*table.optimizer, 0) != 0) // new memory is zero
    resetState(places.threads);
}

std::byte *Shard::weights() const {
  return cached ? cached->weights() : weightMemory.data();
}

float *Shard::state(size_t index) const {
  if (index >= static_cast<size_t>(numStates(*tableSpec)))
    return nullptr;
  return cached ? cached->state(index) : allState(index);
}

std::byte *Shard::allWeights() const {
  return cached ? cached->rows().data() : weightMemory.data();
}

float *Shard::allState(size_t index) const {
  if (index >= static_cast<size_t>(numStates(*tableSpec)))
    return nullptr;
  return reinterpret_cast<float *>(cached ? cached->rows().data() +
                                                cached->stateOffset(index)
                                          : stateMemory[index].data());
}

void Shard::expose() {
  if (cached)
    cached->expose();
}

int64_t Shard::weightStrideBytes() const {
  return cached ? cached->rows().recordBytes()
                : weightStride(*shardSpec, *tableSpec);
}

int64_t Shard::stateWidth(size_t index) const {
  bool isPerRow = tableSpec->states().isPerRow(static_cast<int64_t>(index));
  return isPerRow ? 1 : shardSpec->cols.size();
}

int64_t Shard::stateStride(size_t index) const {
  return cached ? cached->rows().recordBytes() / kFloatBytes
                : stateRowFloats(*shardSpec, *tableSpec,
                                 static_cast<int64_t>(index));
}

int64_t Shard::weightBytes() const {
  return cached ? shardBytes(*shardSpec, *tableSpec) : weightMemory.size();
}

int64_t Shard::stateBytes() const {
  int64_t bytes = 0;
  for (const PageBlock &block : stateMemory)
    bytes += block.size();
  return bytes;
}

/// `writes`: the visitor sets all values but the padding, which becomes 0.
void Shard::visit(std::byte *all, int64_t stride, const Range &rows,
                  bool writes, const Visitor &visitor) const {
  Range part{std::max(rows.begin, shardSpec->rows.begin),
             std::min(rows.end, shardSpec->rows.end)};
  if (part.begin >= part.end)
    return;
  if (cached && writes)
    cached->expose();
  else if (cached)
    cached->flush();
  std::byte *first = all + (part.begin - shardSpec->rows.begin) * stride;
  DeviceMemory *device = weightMemory.device();
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
  visit(allWeights(), weightStrideBytes(), rows, /*writes=*/false, visitor);
}

void Shard::writeWeights(const Range &rows, const Visitor &visitor) {
  visit(allWeights(), weightStrideBytes(), rows, /*writes=*/true, visitor);
}

void Shard::readState(size_t index, const Range &rows,
                      const Visitor &visitor) const {
  visit(reinterpret_cast<std::byte *>(allState(index)),
        stateStride(index) * kFloatBytes, rows, /*writes=*/false, visitor);
}

void Shard::writeState(size_t index, const Range &rows,
                       const Visitor &visitor) {
  visit(reinterpret_cast<std::byte *>(allState(index)),
        stateStride(index) * kFloatBytes, rows, /*writes=*/true, visitor);
}

void Shard::resetState(ThreadPool &threads) {
  if (!tableSpec->trained())
    return;
  for (int64_t i = 0; i < numStates(*tableSpec); ++i) {
    auto value = static_cast<float>(initialState(*tableSpec->optimizer, i));
    int64_t floats = stateRowFloats(*shardSpec, *tableSpec, i);
    writeState(static_cast<size_t>(i), shardSpec->rows,
               [&](const HostRows &part) {
                 forRows(threads, part.rows, [&](int64_t row) {
                   std::fill_n(reinterpret_cast<float *>(part.row(row)), floats,
                               value);
                 });
               });
  }
}

void Shard::touchPages(ThreadPool &threads) {
  constexpr int64_t kTaskBytes = int64_t{64} << 20;
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
      if (isQuantized(tableSpec->elementType))
        quantizeRow(values.data(), dim, tableSpec->elementType,
                    -initializer.bound(), initializer.bound(), part.row(row));
      else
        storeElements(values.data(), dim, tableSpec->elementType,
                      part.row(row));
    });
  });
  resetState(threads);
}

} // namespace neuroshard::runtime
