//===- RowMover.cpp - Copies rows to and from a GPU beside its work -------===//

#include "RowMover.h"
#include "neuroshard/Model/CacheBuffers.h"

#include <algorithm>
#include <memory>

namespace neuroshard::cuda {

using namespace runtime;

namespace {

constexpr auto kValueBytes = static_cast<int64_t>(sizeof(float));

int64_t bytesOf(const PlacedRows &rows) {
  return std::ssize(rows.places) * rows.rowBytes;
}

/// The rows as values, whose bits are copied.
RowMove moveOf(const PlacedRows &rows) {
  RowMove move;
  move.rows = std::ssize(rows.places);
  move.width = rows.rowBytes / kValueBytes;
  move.source.stride = move.target.stride = move.width;
  return move;
}

} // namespace

RowCopies::Point RowMover::now() {
  GpuScope scope(gpu);
  auto event = std::make_shared<Event>(gpu);
  event->record(current());
  return event;
}

std::span<std::byte> RowMover::staging(int64_t bytes) {
  if (onHost.size() < bytes || onHost.size() == 0) {
    GpuScope scope(gpu);
    onHost = PinnedBlock(gpu, std::max(bytes, kRowStagingBytes));
  }
  return {onHost.data(), static_cast<size_t>(onHost.size())};
}

void RowMover::begin(const PlacedRows &rows, const Point &point) {
  static_cast<const Event *>(point.get())->holdBack(stream.get());
  auto places = std::as_bytes(rows.places);
  auto room = [&](DeviceBlock &block, int64_t bytes) {
    if (block.size() < bytes)
      block = DeviceBlock(gpu, std::max(bytes, kRowStagingBytes),
                          "rows on their way to and from caches");
  };
  room(onGpu, bytesOf(rows));
  room(placesOnGpu, std::ssize(places));
  uploads.upload(placesOnGpu.address(), places, stream.get());
}

void RowMover::write(const PlacedRows &rows, const std::byte *staged,
                     const Point &point) {
  GpuScope scope(gpu);
  begin(rows, point);
  gpu.driver.check(gpu.driver.memcpyHtoDAsync(
                       onGpu.address(), staged,
                       static_cast<size_t>(bytesOf(rows)), stream.get()),
                   "copying rows to the GPU");
  RowMove move = moveOf(rows);
  move.source.first = onGpu.as<std::byte>();
  move.target.first = rows.first;
  move.targetPlaces = placesOnGpu.as<int64_t>();
  routing.moveRows({&move, 1}, stream.get());
  stream.wait();
}

void RowMover::read(const PlacedRows &rows, std::byte *staged,
                    const Point &point) {
  GpuScope scope(gpu);
  begin(rows, point);
  RowMove move = moveOf(rows);
  move.source.first = rows.first;
  move.sourcePlaces = placesOnGpu.as<int64_t>();
  move.target.first = onGpu.as<std::byte>();
  routing.moveRows({&move, 1}, stream.get());
  gpu.driver.check(gpu.driver.memcpyDtoHAsync(
                       staged, onGpu.address(),
                       static_cast<size_t>(bytesOf(rows)), stream.get()),
                   "copying rows from the GPU");
  stream.wait();
}

} // namespace neuroshard::cuda
