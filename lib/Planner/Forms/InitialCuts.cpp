//===- InitialCuts.cpp - Tables cut before the first placement ------------===//

#include "InitialCuts.h"

#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace neuroshard;

namespace {

/// Largest memory of a piece, as a share of the roomiest device's.
constexpr double kRoomShare = 0.9;
/// Largest compute of a piece, as a share of the mean device's, by rule.
constexpr double kCostShares[] = {1.0, 0.7, 0.5, 0.35, 0.25};
/// Largest compute, ids and results of a piece, as a share of the mean
/// device's, by rule.
constexpr double kTrafficShares[] = {1.5, 1.0, 0.7};
/// Largest ids and results of a piece, as a share of the larger of the mean
/// device's, by rule.
constexpr double kLinkShares[] = {1.0, 0.7, 0.5, 0.35};
/// Largest number of parts of one cut.
constexpr double kMaxParts = 65536;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Units above one of these limits are cut.
struct CutLimits {
  int64_t bytes = 0;
  double hostBytes = kUnlimited;
  double diskBytes = kUnlimited;
  double computeMs = kUnlimited;
  double inputBytes = kUnlimited;
  double resultBytes = kUnlimited;
  double linkBytes = kUnlimited; ///< of ids, and of results.
};

double resultBytesOf(const Unit &unit) {
  return unit.load.forwardBytes + unit.load.backwardBytes;
}

/// The largest ratio of the unit's memory to its limits, of which each part of
/// a unit takes what row caches share.
double memoryRatioOf(const SearchContext &context, const Unit &unit,
                     const CutLimits &limits) {
  auto ratio = [](int64_t bytes, double limit, int64_t shared = 0) {
    return static_cast<double>(bytes) /
           std::max(1.0, limit - static_cast<double>(shared));
  };
  CacheBytes shared = context.sharedBytesOf(unit.footprint);
  return std::max(
      {ratio(unit.peakBytes(), static_cast<double>(limits.bytes),
             shared.device),
       ratio(unit.footprint.hostBytes, limits.hostBytes, shared.host),
       ratio(unit.footprint.diskBytes, limits.diskBytes)});
}

/// The largest ratio of the unit's costs to their limits.
double costRatioOf(const Unit &unit, const CutLimits &limits) {
  return std::max({unit.aloneMs() / limits.computeMs,
                   unit.load.inputBytes / limits.inputBytes,
                   resultBytesOf(unit) / limits.resultBytes,
                   unit.load.inputBytes / limits.linkBytes,
                   resultBytesOf(unit) / limits.linkBytes});
}

bool cutsRows(const Unit &unit, Way way) {
  return way == Way::Rows || (way == Way::LessTraffic &&
                              unit.load.inputBytes > resultBytesOf(unit));
}

/// By columns, in as many parts as there may be, up to `parts`.
std::optional<std::vector<UnitPtr>>
splitIntoColumns(const SearchContext &context, const Unit &unit, int parts) {
  std::optional<std::vector<UnitPtr>> pieces;
  for (; parts >= 2 && !pieces; parts /= 2)
    pieces = splitColumns(context, unit, parts);
  return pieces;
}

/// `ranges` ranges of rows, each of `columns` pieces.
std::optional<std::vector<UnitPtr>> cutGrid(const SearchContext &context,
                                            const UnitPtr &unit, int ranges,
                                            int columns) {
  std::vector<UnitPtr> rows = {unit};
  if (ranges > 1)
    if (auto pieces = splitRows(context, *unit, ranges))
      rows = *std::move(pieces);
  std::vector<UnitPtr> out;
  for (const UnitPtr &piece : rows)
    if (auto pieces = splitIntoColumns(context, *piece, columns))
      out.insert(out.end(), pieces->begin(), pieces->end());
    else
      out.push_back(piece);
  if (out.size() < 2)
    return std::nullopt;
  return out;
}

/// About `parts` pieces of rows x columns. With r ranges of rows and c of
/// columns a piece receives 1 / r of the ids and sends 1 / c of the results:
/// with r c = parts their sum is least where the two are equal.
std::optional<std::vector<UnitPtr>>
cutRowsAndColumns(const SearchContext &context, const UnitPtr &unit,
                  int parts) {
  double results = std::max(resultBytesOf(*unit), 1.0);
  double ideal = std::sqrt(parts * unit->load.inputBytes / results);
  int ranges =
      static_cast<int>(std::clamp(std::round(ideal), 1.0, double(parts)));
  return cutGrid(context, unit, ranges, (parts + ranges - 1) / ranges);
}

int64_t largestRoom(const SearchContext &context) {
  int64_t room = 0;
  for (int device = 0; device < context.deviceCount; ++device)
    room = std::max(room, context.memoryOf(device) -
                              context.baseOf(device).peakBytes());
  return room;
}

/// A device's share of what its host has, by the roomiest host.
void limitByHosts(const SearchContext &context, CutLimits &limits) {
  const Topology &topology = context.problem.topology;
  std::vector<double> devices(topology.hosts.size());
  for (const Device &device : topology.devices)
    ++devices[static_cast<size_t>(device.host)];
  double memory = 0, disk = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const Host &host = topology.hosts[i];
    if (devices[i] == 0)
      continue;
    memory =
        std::max(memory, static_cast<double>(host.memoryBytes) / devices[i]);
    disk =
        std::max(disk, host.disk.bytes == 0
                           ? kUnlimited
                           : static_cast<double>(host.disk.bytes) / devices[i]);
  }
  limits.hostBytes = std::max(1.0, kRoomShare * memory);
  limits.diskBytes = std::max(1.0, kRoomShare * disk);
}

/// Parts in which no row range is too long for a cache.
int rangesForCache(const SearchContext &context, const Unit &unit) {
  int64_t parts = 1;
  for (size_t i = 0; i < unit.shards.size(); ++i)
    if (int64_t rows = unit.shards[i].rows();
        !mayHaveRows(context, unit.tables[i], rows))
      parts = std::max(parts, ceilDivide(rows, kMaxCachedShardRows));
  return static_cast<int>(parts);
}

/// Cuts a unit that is above a limit. Too costly: in the given direction, if
/// possible. Too large: by columns, or by rows where that takes clearly less
/// memory. Parts that are still too large are cut again.
void cutUnit(const SearchContext &context, const UnitPtr &unit,
             const CutLimits &limits, Way way, std::vector<UnitPtr> &out) {
  double memoryRatio = memoryRatioOf(context, *unit, limits);
  double costRatio = costRatioOf(*unit, limits);
  if (int ranges = rangesForCache(context, *unit); ranges > 1)
    if (auto pieces = splitRows(context, *unit, ranges)) {
      for (const UnitPtr &piece : *pieces)
        cutUnit(context, piece, limits, way, out);
      return;
    }
  if (std::max(memoryRatio, costRatio) <= 1)
    return out.push_back(unit);
  auto countFor = [](double ratio) {
    return std::max(1, static_cast<int>(std::min(std::ceil(ratio), kMaxParts)));
  };
  auto partsFor = [&](double ratio) { return std::max(2, countFor(ratio)); };
  auto byColumns = [&](double ratio) {
    return splitIntoColumns(context, *unit, partsFor(ratio));
  };
  double larger = std::max(memoryRatio, costRatio);
  std::optional<std::vector<UnitPtr>> pieces;
  if (costRatio > 1 && way == Way::RowsAndColumns)
    pieces = cutRowsAndColumns(context, unit, partsFor(larger));
  else if (costRatio > 1 && way == Way::Links)
    pieces = cutGrid(context, unit,
                     countFor(unit->load.inputBytes / limits.linkBytes),
                     countFor(resultBytesOf(*unit) / limits.linkBytes));
  else if (costRatio > 1)
    pieces = cutsRows(*unit, way) ? splitRows(context, *unit, partsFor(larger))
                                  : byColumns(larger);
  if (!pieces && memoryRatio > 1)
    pieces = betterCut(byColumns(memoryRatio),
                       splitRows(context, *unit, partsFor(memoryRatio)));
  if (!pieces)
    return out.push_back(unit);
  // Costs do not fall in proportion to size, so parts are cut for cost only
  // once more.
  for (const UnitPtr &piece : *pieces)
    cutUnit(context, piece, {limits.bytes, limits.hostBytes, limits.diskBytes},
            way, out);
}

} // namespace

std::string CutRule::str() const {
  if (!std::isfinite(costShare))
    return "cuts for memory only";
  char text[80];
  std::snprintf(text, sizeof text, "%s up to %g of a mean device",
                way == Way::Columns       ? "column pieces"
                : way == Way::Rows        ? "row pieces"
                : way == Way::LessTraffic ? "pieces of little traffic"
                : way == Way::Links       ? "pieces of few ids and results"
                                          : "pieces of rows and columns",
                costShare);
  return text;
}

std::vector<CutRule> neuroshard::cutRules(const SearchContext &context) {
  std::vector<CutRule> rules = {{}};
  bool native = context.problem.target == Target::Native;
  bool step = context.options.objective.kind == ObjectiveKind::Step;
  for (double share : kCostShares) {
    rules.push_back({share, Way::Columns});
    if (native)
      rules.push_back({share, Way::Rows});
  }
  // The published objective has no cost of ids.
  for (double share : kTrafficShares)
    if (native && step) {
      rules.push_back({share, Way::LessTraffic});
      rules.push_back({share, Way::RowsAndColumns});
    }
  for (double share : kLinkShares)
    if (native && step)
      rules.push_back({share, Way::Links});
  return rules;
}

std::vector<UnitPtr> neuroshard::cutBy(const SearchContext &context,
                                       const CutRule &rule,
                                       const std::vector<UnitPtr> &units) {
  CutLimits totals = {.computeMs = 0, .inputBytes = 0, .resultBytes = 0};
  for (const UnitPtr &unit : units) {
    totals.computeMs += unit->aloneMs();
    totals.inputBytes += unit->load.inputBytes;
    totals.resultBytes += resultBytesOf(*unit);
  }
  auto limit = [&](double total, bool counts) {
    double share = rule.costShare * total / context.deviceCount;
    return counts && share > 0 ? share : kUnlimited;
  };
  bool traffic =
      rule.way == Way::LessTraffic || rule.way == Way::RowsAndColumns;
  CutLimits limits;
  limits.bytes = std::max<int64_t>(
      1, static_cast<int64_t>(kRoomShare *
                              static_cast<double>(largestRoom(context))));
  limitByHosts(context, limits);
  limits.computeMs = limit(totals.computeMs, rule.way != Way::Links);
  limits.inputBytes = limit(totals.inputBytes, traffic);
  limits.resultBytes = limit(totals.resultBytes, traffic);
  limits.linkBytes = limit(std::max(totals.inputBytes, totals.resultBytes),
                           rule.way == Way::Links);
  std::vector<UnitPtr> pieces;
  for (const UnitPtr &unit : units)
    cutUnit(context, unit, limits, rule.way, pieces);
  return pieces;
}
