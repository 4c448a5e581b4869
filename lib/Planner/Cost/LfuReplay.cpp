//===- LfuReplay.cpp - Hits of an LFU cache, from some of its sets --------===//

#include "LfuReplay.h"

#include "neuroshard/Model/RowCache.h"
#include "neuroshard/Support/Random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <unordered_set>

using namespace neuroshard;

namespace {

/// Sets that are replayed: fewer if a batch uses many rows of a set.
constexpr double kMostSets = 32, kLeastSets = 4;
constexpr double kAllUses = 130'000;
/// Uses of a set, or batches if these are more; the last third counts.
constexpr double kUses = 4000, kBatches = 64;
/// Where a batch uses more rows of a set, fewer than one in fifty are there.
constexpr double kMostUses = 50 * kCacheWays;
/// Rows that are used more often per batch are there anyway.
constexpr double kMostRate = 3;

struct HitCount {
  double uses = 0, hits = 0;
};

/// Rows of a set, as numbers: those of the first group, of the second, ...
class SetRows {
public:
  /// Set `index` of so many, each of which has its share of a group; `phases`
  /// in [0, 1) say in which sets what is left of dividing lies.
  SetRows(std::span<const UsedRows> groups, double sets, int index,
          std::span<const double> phases) {
    double rates = 0;
    int64_t rows = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
      double share = groups[i].rows / sets;
      double before = std::floor(index * share + phases[i]);
      double after = std::floor((index + 1) * share + phases[i]);
      // A row is used by a batch if at least one of its uses is then.
      double rate = std::min(-std::log1p(-groups[i].used), kMostRate);
      firstRows.push_back(rows);
      rows += static_cast<int64_t>(after - before);
      ratesUpTo.push_back(rates += (after - before) * rate);
    }
    firstRows.push_back(rows);
  }

  /// Expected uses of all rows by a batch.
  double rate() const { return ratesUpTo.back(); }
  size_t groupOf(int64_t row) const {
    auto found = std::ranges::upper_bound(firstRows, row);
    return static_cast<size_t>(found - firstRows.begin()) - 1;
  }
  /// The row of a use: `share` of all rates are those of rows before it.
  int64_t rowAt(double share) const {
    double rate = share * ratesUpTo.back();
    // At most the last group with rows.
    auto found =
        std::min(std::ranges::upper_bound(ratesUpTo, rate),
                 std::ranges::lower_bound(ratesUpTo, ratesUpTo.back()));
    auto group = static_cast<size_t>(found - ratesUpTo.begin());
    double before = group > 0 ? ratesUpTo[group - 1] : 0;
    double part = (rate - before) / (ratesUpTo[group] - before);
    int64_t first = firstRows[group], count = firstRows[group + 1] - first;
    return first +
           std::clamp(static_cast<int64_t>(part * static_cast<double>(count)),
                      int64_t{0}, count - 1);
  }

private:
  std::vector<int64_t> firstRows;
  std::vector<double> ratesUpTo;
};

/// One set of the cache, whose rows are used at random.
class ReplayedSet {
public:
  ReplayedSet(const SetRows &rows, SplitMix64 &random)
      : rows(rows), random(random) {
    tags.fill(kNoRow);
  }

  /// At least kUses and kBatches.
  void replay(std::vector<HitCount> &counts) {
    if (rows.rate() <= 0)
      return;
    next = gap();
    double used = 0, first = std::floor(next), done = 0;
    while (done < 1) {
      double number = drawBatch();
      useBatch(done > 2.0 / 3, counts);
      used += static_cast<double>(batch.size());
      done = std::min(used / kUses, (number - first) / kBatches);
    }
  }

private:
  static constexpr int64_t kNoRow = -1;

  /// Exponentially distributed. How rare uses are is of no matter if hardly a
  /// batch has two.
  double gap() {
    constexpr double kRare = 1e-6;
    return -std::log1p(-random.real()) / std::max(rows.rate(), kRare);
  }

  /// The distinct rows of the next batch that uses some, in the order of their
  /// ids. Returns its number.
  double drawBatch() {
    ++turn;
    batch.clear();
    double number = std::floor(next);
    for (; next < number + 1; next += gap())
      if (int64_t row = rows.rowAt(random.real()); isNew(row))
        batch.push_back(row);
    return number;
  }

  /// Not drawn before for this batch.
  bool isNew(int64_t row) {
    constexpr size_t kLinear = 64;
    if (batch.size() < kLinear) {
      seen.clear();
      return std::ranges::find(batch, row) == batch.end();
    }
    if (seen.empty())
      seen.insert(batch.begin(), batch.end());
    return seen.insert(row).second;
  }

  void use(size_t place) {
    ++uses[place].batches;
    uses[place].last = turn;
  }

  /// Those that are there first, as batches do.
  void useBatch(bool counted, std::vector<HitCount> &counts) {
    missed.clear();
    for (int64_t row : batch) {
      auto found = std::ranges::find(tags, row);
      bool isHit = found != tags.end();
      if (isHit)
        use(static_cast<size_t>(found - tags.begin()));
      else
        missed.push_back(row);
      if (!counted)
        continue;
      HitCount &count = counts[rows.groupOf(row)];
      count.uses += 1;
      count.hits += isHit ? 1 : 0;
    }
    for (int64_t row : missed)
      admit(row);
  }

  /// In the place of the row that leaves first; nowhere if all are in use.
  void admit(int64_t row) {
    size_t best = tags.size();
    for (size_t place = 0; place < tags.size(); ++place)
      if (uses[place].last != turn &&
          (best == tags.size() || uses[place].leavesBefore(uses[best])))
        best = place;
    if (best == tags.size())
      return;
    tags[best] = row;
    uses[best] = {1, turn};
  }

  struct Use {
    uint32_t batches = 0; ///< since the row came in.
    uint32_t last = 0;    ///< turn.
    bool leavesBefore(const Use &other) const {
      return batches != other.batches ? batches < other.batches
                                      : last < other.last;
    }
  };

  const SetRows &rows;
  SplitMix64 &random;
  double next = 0;   ///< when the next use is, in batches.
  uint32_t turn = 0; ///< batches that used rows.
  // By place.
  std::array<int64_t, kCacheWays> tags;
  std::array<Use, kCacheWays> uses;
  std::vector<int64_t> batch, missed;
  std::unordered_set<int64_t> seen;
};

} // namespace

std::vector<double> neuroshard::lfuHitRates(std::span<const UsedRows> groups,
                                            double places) {
  std::vector<double> result(groups.size());
  double sets = std::floor(places / kCacheWays);
  if (groups.empty() || sets < 1)
    return result;
  double used = 0;
  for (const UsedRows &group : groups)
    used += group.rows * group.used;
  if (used / sets > kMostUses)
    return result;
  double usesOfSet = std::max(kUses, kBatches * used / sets);
  double replayed =
      std::min(sets, std::clamp(kAllUses / usesOfSet, kLeastSets, kMostSets));
  SplitMix64 random(1);
  std::vector<double> phases;
  for (size_t i = 0; i < groups.size(); ++i)
    phases.push_back(random.real());
  std::vector<HitCount> counts(groups.size());
  for (int i = 0; i < static_cast<int>(replayed); ++i)
    ReplayedSet(SetRows(groups, sets, i, phases), random).replay(counts);
  // Groups without uses there have few rows and are like those used next more
  // often, or like the one used most.
  std::vector<size_t> order;
  for (size_t i = 0; i < groups.size(); ++i)
    order.push_back(i);
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t i) { return groups[i].used; });
  auto known =
      std::ranges::find_if(order, [&](size_t i) { return counts[i].uses > 0; });
  double last = 0;
  if (known != order.end())
    last = counts[*known].hits / counts[*known].uses;
  for (size_t i : order) {
    if (counts[i].uses > 0)
      last = counts[i].hits / counts[i].uses;
    result[i] = last;
  }
  return result;
}
