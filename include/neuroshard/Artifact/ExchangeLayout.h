//===- ExchangeLayout.h - Layout of the exchanges of a plan ----*- C++ -*-===//
//
// Which ids, partial results and gradients travel between which devices:
// streams of ids, the rows of partial results, and which of them make up each
// result. All of it follows from the plan and the lookups. The compiler makes
// the layout and writes it into the artifact, runtimes read it from there, and
// the planner makes it for a plan that has no artifact yet. StepTraffic.h has
// the bytes that a step sends by it.
//
// A bucket holds the ids of one lookup that fall into one row range. It goes
// as a stream to each device that has columns of these rows. A pooled entry
// (lookup of one shard) owns some columns of the pooled rows that its device
// sends to the rank of each sample; an unpooled entry has a block of its own.
// By the route of a table, a relay in each group adds up what devices of the
// group have of a sample and sends the sum on. Ids go by relay whatever the
// route: once to each group that has rows for them, and from there to owners.
//
// Of a shard with copies, each has the ids of some ranks, its readers, and
// sends results to these alone (CopyReaders.h).
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_EXCHANGELAYOUT_H
#define NEUROSHARD_ARTIFACT_EXCHANGELAYOUT_H

#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Artifact/ExchangePlan.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace neuroshard {

/// Ranks in ascending order; empty: all.
class Readers {
public:
  Readers() = default;
  explicit Readers(std::vector<int32_t> ranks) : ranks(std::move(ranks)) {}
  static Readers none() { return Readers({kNoRank}); }

  bool areAll() const { return ranks.empty(); }
  bool areNone() const { return ranks.size() == 1 && ranks[0] == kNoRank; }
  bool contains(int64_t rank) const {
    return areAll() || std::ranges::binary_search(ranks, rank);
  }
  /// Their part of so many ranks.
  double shareOf(int32_t all) const {
    return areAll()
               ? 1.0
               : static_cast<double>(ranks.size()) / static_cast<double>(all);
  }
  /// None listed if they are all.
  const std::vector<int32_t> &list() const { return ranks; }
  /// Adds those of `other`.
  void add(const Readers &other);

  bool operator==(const Readers &) const = default;

private:
  static constexpr int32_t kNoRank = -1;

  std::vector<int32_t> ranks;
};

struct StreamLayout {
  int32_t lookup;
  int32_t bucket;
  Range rows;
  bool pooled;
  bool weighted;
  Readers readers = {}; ///< who sends ids: the readers of its entries.

  bool operator==(const StreamLayout &) const = default;
};

struct EntryLayout {
  int32_t kernel; ///< index into the program's lookups.
  int32_t slot;
  int32_t lookup;
  int32_t stream; ///< within the StreamSet.
  Range cols;     ///< of the table.
  bool pooled;
  /// First column in the pooled rows, or, of a relayed entry, in those that go
  /// to relays.
  int64_t pooledColumn;
  bool relayed = false;
  Readers readers = {}; ///< who gets results and sends gradients.

  bool operator==(const EntryLayout &) const = default;
};

/// What one device looks up in one exchange.
struct StreamSet {
  std::vector<StreamLayout> streams;
  std::vector<EntryLayout> entries;
  int64_t pooledWidth = 0;  ///< columns of pooled entries sent directly,
  int64_t relayedWidth = 0; ///< and by relays.

  bool operator==(const StreamSet &) const = default;
};

struct Destination {
  int32_t device;
  int32_t stream;

  bool operator==(const Destination &) const = default;
};

struct BucketLayout {
  int32_t lookup;
  Range rows;
  /// Takes every id of its feature, so ids need no sifting.
  bool whole;
  std::vector<Destination> destinations;

  bool operator==(const BucketLayout &) const = default;
};

/// An entry of a device's own shards.
struct EntryPlace {
  int32_t device;
  int32_t entry;

  bool operator==(const EntryPlace &) const = default;
};

/// Columns of a result that one shard contributes to.
struct PartialColumns {
  int32_t device; ///< the first that has the shard.
  int32_t entry;
  int32_t bucket;
  Range rows;
  Range cols;
  std::vector<EntryPlace> copies = {}; ///< all, if there are several.

  bool operator==(const PartialColumns &) const = default;
};

/// Columns of a result to which the same parts contribute, in the order in
/// which they are added.
struct Segment {
  Range cols;
  std::vector<int32_t> parts;

  bool operator==(const Segment &) const = default;
};

/// Columns of a result that the relays of one group send.
struct RelayedColumns {
  int32_t group;
  Range cols;
  int64_t column; ///< first column in the relays' rows.

  bool operator==(const RelayedColumns &) const = default;
};

struct ResultLayout {
  std::vector<PartialColumns> parts; ///< by rank, then row, then column.
  /// Takes the place of `parts` for results and gradients; by group.
  std::vector<RelayedColumns> relayed;
  std::vector<Segment> segments;
  bool replicated = false;
  int32_t localEntry = -1; ///< of a replicated table.

  bool operator==(const ResultLayout &) const = default;
};

/// Columns of the relayed rows of one device of a group.
struct RelaySource {
  int32_t index; ///< of the device in its group.
  int64_t column;

  bool operator==(const RelaySource &) const = default;
};

/// Columns that a relay adds up, in this order.
struct RelaySum {
  int64_t column; ///< first column in the relays' rows.
  int64_t size;
  std::vector<RelaySource> sources;

  bool operator==(const RelaySum &) const = default;
};

/// What every relay of one group sends to the ranks of the samples.
struct RelayLayout {
  std::vector<RelaySum> sums;
  int64_t width = 0; ///< columns of all sums.

  bool operator==(const RelayLayout &) const = default;
};

struct ExchangeLayout {
  std::vector<StreamSet> owners; ///< per device; ids come from all devices.
  /// Per device: lookups of replicated tables, on the local ids. The streams
  /// are the same on every device, in the order of the lookups.
  std::vector<StreamSet> locals;
  std::vector<BucketLayout> buckets;
  std::vector<std::vector<int32_t>> bucketsOfLookup;
  std::vector<ResultLayout> results; ///< per lookup.

  std::vector<RelayLayout> relays; ///< per group; empty if none is needed.
  /// Per group: what its devices have streams of, each once, in the order of
  /// the buckets; it has no entries. Empty if ids go to their owners directly.
  std::vector<StreamSet> groupIds;

  bool hasRemote = false;     ///< some lookup is not replicated.
  bool hasReplicated = false; ///< some lookup is.

  bool operator==(const ExchangeLayout &) const = default;
};

/// f32 columns with those that fill up to 16 bytes.
constexpr int64_t paddedColumns(int64_t columns) {
  return (columns + 3) / 4 * 4;
}

/// The destination number of a device's own replicated tables.
constexpr int32_t localDestination = -1;

/// One for each exchange of the plan.
std::vector<ExchangeLayout> makeLayouts(const ExchangePlan &plan);

/// The layout of the gradients of an exchange while some tables are frozen:
/// theirs do not travel, but for those of lookups with sample weights, whose
/// gradients owners compute of them. Streams are as before, and all entries
/// keep their numbers; those without gradients have no readers.
ExchangeLayout withoutGradientsOf(const ExchangeSpec &spec,
                                  const DeviceGroups &groups,
                                  const std::vector<bool> &frozen,
                                  ExchangeLayout layout);

/// Whose values of a part a rank reads.
EntryPlace placeFor(const ExchangeLayout &layout, const PartialColumns &part,
                    int64_t rank);

/// Cuts columns wherever a range begins or ends; a segment has the numbers of
/// the ranges that contain it, of which there is at least one.
std::vector<Segment> cutColumns(const std::vector<Range> &ranges);

/// Of each table: whether its pooled results go by relay.
std::vector<bool> relayedTables(const ExchangePlan &plan);

/// Marks the entries that go by relay, by relayedTables(). Parts must be in
/// their final order.
void markRelayed(const DeviceGroups &groups, const std::vector<bool> &relayed,
                 const ExchangeSpec &spec, ExchangeLayout &layout);
/// Places the columns of pooled entries side by side, of relayed ones apart
/// from the others; those without readers get none.
void placePooledColumns(StreamSet &set);
/// Adds the relays of marked entries, whose columns must have been placed.
void addRelays(const DeviceGroups &groups, ExchangeLayout &layout);
/// Sets groupIds, from the rest of the layout, if there are several groups.
void addGroupIds(const DeviceGroups &groups, ExchangeLayout &layout);
/// Sets the readers of all entries and streams and the copies of parts, which
/// follow from the rest of the layout.
void addReaders(const ExchangePlan &plan, const DeviceGroups &groups,
                ExchangeLayout &layout);
/// The numbers in its group's set of the streams of a device.
std::vector<size_t> streamsInGroup(const StreamSet &group,
                                   const StreamSet &device);

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_EXCHANGELAYOUT_H
