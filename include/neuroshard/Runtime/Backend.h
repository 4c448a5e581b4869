//===- Backend.h - Interface to a device's memory and kernels ---*- C++ -*-===//
//
// The schedule of a step (lib/Runtime/Exchange, lib/Runtime/Step) knows where
// every value of a batch lies, and reads and writes none. A backend does that,
// in the memory of its device: CPUs (lib/Runtime/Cpu) and GPUs
// (lib/RuntimeCuda/Backend).
//
// Pointers are to memory of the device. Calls take effect in the order in which
// they are made; only those that say so wait for their end. Lists that are
// passed may be destroyed after the call. Errors are RuntimeErrors.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_BACKEND_H
#define NEUROSHARD_RUNTIME_BACKEND_H

#include "neuroshard/Artifact/ExchangePlan.h"
#include "neuroshard/Runtime/Buffer.h"
#include "neuroshard/Runtime/Communicator.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// The ids of one rank's batch as the caller has them, in memory of the device.
struct JaggedInput {
  const void *ids;
  int64_t numIds;
  const int64_t *offsets;
  int64_t numOffsets;
  const float *weights;
};

/// When the ids of a batch are checked.
enum class IdCheck {
  Early, ///< before kernels read them: a wrong one ends the step.
  Late,  ///< by the kernels that read them: Backend::check() tells of it.
};

/// Numbers of ids, from which the sizes of messages follow.
struct IdCounts {
  std::vector<int64_t> firstOfFeature; ///< [features + 1]
  std::vector<int64_t> ofBucket;
};

/// Where the ids of a bucket are written for one device. Bags are described by
/// their lengths or, if kernels read the ids there, by their offsets, [batch +
/// 1] from 0; both are null if the lookup is unpooled.
struct IdTarget {
  std::byte *ids = nullptr;
  float *weights = nullptr; ///< null unless weighted.
  int32_t *lengths = nullptr;
  int64_t *offsets = nullptr;
};

struct PackTargets {
  /// Per bucket, one for each of its destinations.
  std::vector<std::vector<IdTarget>> ofBucket;
  /// Per bucket: gets the place in the input of each of its ids; or null.
  std::vector<int64_t *> places;
  /// Per lookup: gets the number of ids of each bag, wherever their rows live;
  /// or null.
  std::vector<float *> bagCounts;
};

/// Sorts the ids of one batch by the devices that own their rows. The batch
/// must outlive it.
class IdPacker {
public:
  virtual ~IdPacker() = default;

  /// Waits for the numbers. Throws if offsets are wrong.
  virtual IdCounts count() = 0;
  /// To be called after count(). Ids are written in the order of the input, and
  /// less the first row of their bucket. Throws, here or in count(), an error
  /// that names the first id, by lookup and position, that is out of range.
  virtual void pack(const PackTargets &targets) = 0;
};

/// Lengths of bags, and where the offsets that they add up to are written,
/// [bags + 1] from 0.
struct BagLengths {
  const int32_t *lengths;
  int64_t *offsets;
  int64_t bags;
};

/// The ids that one rank has sent for one stream, as kernels read them.
struct PeerIds {
  const std::byte *ids = nullptr; ///< rows of the shard.
  const float *weights = nullptr; ///< null unless weighted.
  /// Bag b has the ids [offsets[b], offsets[b + 1]); null if unpooled.
  const int64_t *offsets = nullptr;
  int64_t bags = 0;
  int64_t numIds = 0;
  /// Whether bags have all of the ids. Else others have some of them, and the
  /// first bag may begin anywhere.
  bool isExact = true;
};

/// The ids of a lookup of a shard with a row cache.
struct CachedLookup {
  int32_t lookup; ///< of the device's program.
  const std::byte *ids;
  int64_t numIds;
  /// Gets the place of each id's row, in the type of the ids.
  std::byte *places;
};

/// Cached rows of a batch, which stay where they are while it lives.
class RowsInUse {
public:
  virtual ~RowsInUse() = default;

  /// Until the rows are there.
  virtual void wait() = 0;
  /// The update that is made next may change all of the slot's. Waits for those
  /// that are read again.
  virtual void markChanged(int32_t slot) = 0;
};

/// One lookup of a shard on the ids of one rank. If the shard has a row cache,
/// the ids are places in it. Row i of the results, a bag or
/// an id, is written to out + i * stride.
struct LookupPart {
  int32_t lookup; ///< of the device's program.
  PeerIds ids;
  float *out;
  int64_t stride;
  const float *divisors = nullptr; ///< of each bag; null: 1.
};

/// Rows of values in memory. Strides are in values. A row of a format with
/// scales begins with its scale, which has the room of scaleWidth() values.
struct SourceRows {
  const std::byte *first = nullptr;
  int64_t stride = 0;
  int64_t column = 0; ///< of a row's first value that is read.
};
struct TargetRows {
  std::byte *first = nullptr;
  int64_t stride = 0;
};

/// Copies or adds up rows: row i of the target is
/// round((source[i] + addends[0][i] + ...) / divisors[i] * scale), computed in
/// f32 and rounded once. With one format and no arithmetic the bits are copied,
/// those of scales, too; such rows are read from their first value on.
struct RowMove {
  SourceRows source;
  std::vector<SourceRows> addends; ///< added in this order.
  WireFormat sourceFormat = WireFormat::F32;
  TargetRows target;
  WireFormat targetFormat = WireFormat::F32;
  int64_t rows = 0;
  int64_t width = 0; ///< values of a row.
  /// If not null, row i is row sourcePlaces[i] - firstPlace of the source, or
  /// targetPlaces[i] - firstPlace of the target.
  const int64_t *sourcePlaces = nullptr;
  const int64_t *targetPlaces = nullptr;
  int64_t firstPlace = 0;
  const float *divisors = nullptr; ///< per row, where 0 divides nothing.
  float scale = 1;
};

/// The ids of one lookup of a shard from one rank, and the gradients of its
/// results: that of item i, a bag or an id, is at gradients + i * stride.
struct GradientPart {
  int32_t lookup; ///< of the device's program.
  /// Parts of slots that read the same stream have one number.
  int64_t stream;
  PeerIds ids;
  const float *gradients;
  int64_t stride;
  std::optional<int64_t> padding; ///< row of the shard without a gradient.
  /// If the shard has a row cache: the places of the ids' rows in it, in the
  /// type of the ids, and the cached rows of the batch.
  const std::byte *places = nullptr;
  RowsInUse *rows = nullptr;
};

/// Sums of the gradients of each row of a slot, and for each row a number that
/// is above 0 if it has gradients, else 0.
struct SlotSums {
  int32_t slot;
  int64_t rows;
  float *sums;
  int64_t stride; ///< values from row to row, a multiple of 4.
  float *counts;
};

/// The same for gradients of sample weights: `out` gets one value for each id.
struct WeightGradientPart {
  int32_t lookup;
  PeerIds ids;
  const float *gradients;
  int64_t stride;
  float *out;
};

/// Values that are added to those of an array.
struct PlacedValues {
  const float *values;
  int64_t count;
  /// Value i is added at places[i], or at first + i if that is null.
  const int64_t *places;
  int64_t first;
};

/// Norms of rows, normsPerRow of each, that are added to those of a slot.
struct NormTerm {
  int32_t slot;
  Range rows; ///< distinct rows of the slot that it has norms for.
  const float *norms;
};

/// The distinct rows of some slots that have gradients, and the sums of these.
class DistinctSums {
public:
  virtual ~DistinctSums() = default;

  /// Waits. None of a slot without ids.
  virtual int64_t numRows(int32_t slot) const = 0;
  /// Writes the rows of a slot, ascending, as ids of so many bytes.
  virtual void writeRows(int32_t slot, int32_t idBytes,
                         std::byte *to) const = 0;
  /// [numRows] rows of f32, each padded to 16 bytes.
  virtual const float *sums(int32_t slot) const = 0;
};

/// How many distinct rows are asked for.
enum class RowNumber { Bound, Exact };

/// The update of all slots that have ids in a step, prepared.
class Update {
public:
  virtual ~Update() = default;

  /// Adds up gradients and applies the optimizers. Slots whose optimizer needs
  /// the norms of rows over all columns of their table wait for finish().
  /// `stepSizes`: per slot; while capturing, those of setStepSizes take their
  /// place at each replay.
  virtual void run(std::span<const StepSize> stepSizes) = 0;

  /// The distinct rows of a slot, counted from the first, that lie among these
  /// rows of its shard; none if the slot has no ids in the step. Waits, but for
  /// a bound for all rows of the shard: then a backend may count rows that are
  /// not there, as many on all devices that have the same ids of these rows.
  virtual Range distinctRows(int32_t slot, Range rows,
                             RowNumber number) const = 0;
  /// After run(): the norms over the columns of its shard of a slot's distinct
  /// rows, normsPerRow of its table for each. Those of rows that are not
  /// there are undefined.
  virtual const float *norms(int32_t slot) const = 0;
  /// Replaces the norms of slots by sums of terms, which come in the order in
  /// which they are added, and applies the optimizers that wait for them.
  virtual void finish(std::span<const NormTerm> terms) = 0;
};

/// Rows of an array in memory of a device, each of `rowBytes` bytes.
struct PlacedRows {
  std::byte *first;
  int64_t rowBytes; ///< a multiple of 4.
  std::span<const int64_t> places;
};

/// Copies rows between memory of the host and of a device, beside the work of
/// the device. Its functions may be called from any thread, those that copy
/// from one at a time.
class RowCopies {
public:
  virtual ~RowCopies() = default;

  /// A point in the work of the device.
  using Point = std::shared_ptr<const void>;
  /// The end of the work of the calls before.
  virtual Point now() = 0;

  /// At least so many bytes of memory of the host, which the rows are copied
  /// from and to, one behind the other.
  virtual std::span<std::byte> staging(int64_t bytes) = 0;
  // These begin after `point` and return when the rows are there.
  virtual void write(const PlacedRows &rows, const std::byte *staged,
                     const Point &point) = 0;
  virtual void read(const PlacedRows &rows, std::byte *staged,
                    const Point &point) = 0;
};

/// What runs the kernels of one device of a world.
class Backend {
public:
  virtual ~Backend() = default;

  /// Later calls take effect in the order of this stream (a CUstream), after
  /// those before. CPUs have none.
  virtual void useStream(void *) {}
  /// Whether calls are recorded now, to be replayed: into a graph of CUDA.
  virtual bool isCapturing() const { return false; }
  /// Step sizes of the updates in graphs that are replayed from here on.
  virtual void setStepSizes(std::span<const StepSize>) {}
  /// Waits for the work of the calls before.
  virtual void finish() {}
  virtual void clear(std::byte *first, int64_t bytes) = 0;
  virtual void copy(std::byte *to, const std::byte *from, int64_t bytes) = 0;

  /// `batch`: samples of each feature.
  virtual std::unique_ptr<IdPacker>
  packIds(int32_t exchange, const JaggedInput &input, int64_t batch) = 0;
  /// Whether kernels can read ids in the caller's memory and check them (Late).
  /// Then, on a single device, the host need not wait for their numbers.
  virtual bool readsInPlace() const { return false; }
  /// Takes the place of packIds. Writes the offsets of all bags, [features *
  /// batch + 1]: those of the input if they are right, else of empty bags, and
  /// check() tells of it. `sizes`: gets the number of ids of each bag; or null.
  virtual void readInPlace(int32_t /*exchange*/, const JaggedInput & /*input*/,
                           int64_t * /*offsets*/, float * /*sizes*/) {}
  /// Waits for the work of the calls before. Throws what was wrong with ids
  /// that were read in place since the last call.
  virtual void check() { finish(); }

  virtual void addUp(std::span<const BagLengths> bags) = 0;
  /// Starts to bring the rows of a batch, to be called once with all its ids of
  /// shards with a cache. Backends without such shards have none.
  virtual std::unique_ptr<RowsInUse>
  fetchRows(std::span<const CachedLookup> /*lookups*/) {
    return nullptr;
  }
  /// Null if memory of the device is the host's.
  virtual RowCopies *rowCopies() { return nullptr; }
  /// `isRead`: kernels read the results soon. Else the caller does, later.
  virtual void lookUp(std::span<const LookupPart> parts, bool isRead) = 0;
  virtual void moveRows(std::span<const RowMove> moves) = 0;
  /// Sorts the ids of each slot by row. The gradients of a row are added in the
  /// order of the parts and of the ids in them.
  virtual std::unique_ptr<Update>
  prepareUpdate(std::vector<GradientPart> parts) = 0;
  /// Sums of the gradients of each row, added in the same order.
  virtual std::unique_ptr<DistinctSums>
  sumByRow(std::vector<GradientPart> parts) = 0;
  /// Adds the gradients of parts, in their order and that of the ids in them,
  /// to the sums of their slots, which are 0 before, as are the numbers.
  virtual void addUpRows(std::vector<GradientPart> parts,
                         std::span<const SlotSums> sums) = 0;
  /// Applies the optimizers to the rows whose number is above 0.
  virtual void updateRows(std::span<const SlotSums> sums,
                          std::span<const StepSize> stepSizes) = 0;
  virtual void
  computeWeightGradients(std::span<const WeightGradientPart> parts) = 0;
  /// Sets `out`, [count], to the sums of the values at each place, divided by
  /// `divisor`.
  virtual void addAtPlaces(std::span<const PlacedValues> values, float *out,
                           int64_t count, float divisor) = 0;
};

/// Memory of one device, where its shards, the buffers of its steps and the
/// tensors that these return lie. Thread-safe.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;

  /// Undefined values, aligned to at least 64 bytes. Throws a RuntimeError if
  /// there is not enough.
  virtual std::byte *allocate(int64_t bytes) = 0;
  virtual void free(std::byte *memory) noexcept = 0;
  /// Addresses for so many bytes. commit() lets the first ones have memory, at
  /// least as many as before, and throws a RuntimeError if there is not enough;
  /// release() frees all.
  virtual std::byte *reserve(int64_t bytes) = 0;
  virtual void commit(std::byte *reserved, int64_t bytes) = 0;
  virtual void release(std::byte *reserved) noexcept = 0;

  // These wait for the work of the device before, and for their own. read and
  // write copy from and to memory of the host.
  virtual void clear(std::byte *memory, int64_t bytes) = 0;
  virtual void read(void *to, const std::byte *from, int64_t bytes) = 0;
  virtual void write(std::byte *to, const void *from, int64_t bytes) = 0;
};

/// The memory of one shard, in the layout of its Shard (Shards/Shard.h).
struct SlotMemory {
  std::byte *weights = nullptr;
  std::array<float *, kMaxStates> states =
      {}; ///< null if the optimizer has fewer.
};

/// What a device brings for its backend. All of it outlives the backend, but
/// for the list of slots.
struct BackendParts {
  std::span<const SlotMemory> slots;
  BufferSource &buffers;         ///< in memory of the device.
  std::unique_ptr<Backend> host; ///< on the threads of the host, in its memory.
};

/// Makes the backends of a world that is opened with it.
class BackendFactory {
public:
  virtual ~BackendFactory() = default;

  /// Sets what gives memory of a device back that the caller keeps: where there
  /// is none, it is called and allocation tried again. To be called first.
  virtual void whenFull(std::function<void()>) {}

  /// Called once for each device, before make. The memory may outlive the
  /// device.
  virtual std::shared_ptr<DeviceMemory> makeMemory(int32_t rank) = 0;
  /// Called once for each device.
  virtual std::unique_ptr<Backend> make(int32_t rank, BackendParts parts) = 0;
  /// Called once for each device of a world in one process, after make: a
  /// communicator that exchanges messages in memory of the device in the order
  /// of its work. `group` connects the threads of the world by memory of the
  /// host.
  virtual std::unique_ptr<Communicator>
  connect(int32_t rank, BufferSource &buffers,
          std::unique_ptr<Communicator> group) = 0;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_BACKEND_H
