//===- CheckLayout.cpp - Checks the layout of exchanges -------------------===//
//
// Every check takes time linear in the size of the layout, up to a logarithm:
// it follows the order in which rows and columns must lie and remembers of each
// part up to which column it was seen.
//
//===----------------------------------------------------------------------===//

#include "CheckLayout.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

namespace neuroshard {
namespace {

std::string boundsText(int64_t begin, int64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + "]";
}

std::string boundsText(const Range &range) {
  return boundsText(range.begin, range.end);
}

/// The buckets of one lookup.
void checkRowsOfLookup(const JsonValue &value, const ExchangeLayout &layout,
                       size_t lookup, int64_t rows) {
  auto bucketAt = [&](int32_t number) -> const BucketLayout & {
    return layout.buckets[static_cast<size_t>(number)];
  };
  auto place = [&](int32_t number) {
    return value["buckets"].at(static_cast<size_t>(number));
  };
  std::vector<int32_t> order = layout.bucketsOfLookup[lookup];
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return bucketAt(a).rows < bucketAt(b).rows;
  });
  int64_t end = 0;
  const Range *before = nullptr;
  for (int32_t number : order) {
    const Range &own = bucketAt(number).rows;
    if (before && *before == own)
      place(number)["rows"].wrong("rows of no other bucket of the lookup");
    if (own.begin > end)
      break;
    end = std::max(end, own.end);
    before = &own;
  }
  if (end != rows)
    value["buckets"].wrong("each row of lookup " + std::to_string(lookup));
}

/// The streams of a device's own tables or of its copies.
void checkStreams(const JsonValue &value, const StreamSet &set) {
  std::vector<bool> isRead(set.streams.size(), false);
  for (const EntryLayout &entry : set.entries)
    isRead[static_cast<size_t>(entry.stream)] = true;
  std::set<int32_t> buckets;
  for (const StreamLayout &stream : set.streams)
    if (!buckets.insert(stream.bucket).second)
      value.wrong("bucket " + std::to_string(stream.bucket) + " once");
  for (size_t i = 0; i < isRead.size(); ++i)
    if (!isRead[i])
      value.wrong("streams that entries read, but none reads bucket " +
                  std::to_string(set.streams[i].bucket));
}

class RelayChecker {
public:
  RelayChecker(const JsonValue &value, const DeviceGroups &groups,
               const ExchangeLayout &layout)
      : value(value), groups(groups), layout(layout) {
    for (const RelayLayout &relay : layout.relays)
      isTaken.emplace_back(relay.sums.size(), false);
    for (const StreamSet &owner : layout.owners) {
      partOfEntry.emplace_back(owner.entries.size(), -1);
      std::vector<int32_t> &relayed = relayedEntries.emplace_back();
      for (size_t i = 0; i < owner.entries.size(); ++i)
        if (owner.entries[i].relayed)
          relayed.push_back(static_cast<int32_t>(i));
    }
  }

  void check() {
    bool isUsed = false;
    for (size_t k = 0; k < layout.results.size(); ++k)
      if (!layout.results[k].relayed.empty()) {
        isUsed = true;
        checkResult(k);
      }
    if (!isUsed && !layout.relays.empty())
      value["relays"].wrong("none, as no result is relayed");
    for (size_t group = 0; group < isTaken.size(); ++group)
      for (size_t i = 0; i < isTaken[group].size(); ++i)
        if (!isTaken[group][i])
          sumPlace(static_cast<int32_t>(group), i)
              .wrong("a sum that a result takes");
  }

private:
  JsonValue sumPlace(int32_t group, size_t sum) const {
    return value["relays"].at(static_cast<size_t>(group))["sums"].at(sum);
  }

  void checkResult(size_t lookup) {
    const ResultLayout &result = layout.results[lookup];
    JsonValue place = value["results"].at(lookup);
    ends.clear();
    for (size_t i = 0; i < result.parts.size(); ++i) {
      const PartialColumns &part = result.parts[i];
      ends.push_back(part.cols.begin);
      partOfEntry[static_cast<size_t>(part.device)]
                 [static_cast<size_t>(part.entry)] = static_cast<int32_t>(i);
    }
    for (size_t i = 0; i < result.relayed.size(); ++i) {
      const RelayedColumns &columns = result.relayed[i];
      if (i > 0 && follows(result.relayed[i - 1], columns))
        place["relayed"].at(i).wrong("columns by group, each once");
      size_t sum = takeSum(place["relayed"].at(i), columns);
      checkSources(lookup, columns, sum);
    }
    for (size_t i = 0; i < ends.size(); ++i)
      if (int64_t end = result.parts[i].cols.end; ends[i] != end)
        place["parts"].at(i).wrong("a part whose columns " +
                                   boundsText(ends[i], end) +
                                   " are in a sum of its group's relay");
  }

  /// Whether `a` must come after `b`, or has columns of it.
  static bool follows(const RelayedColumns &a, const RelayedColumns &b) {
    return std::tie(a.group, a.cols.end) > std::tie(b.group, b.cols.begin);
  }

  /// The sum with these columns, which only one result may take.
  size_t takeSum(const JsonValue &place, const RelayedColumns &columns) {
    auto group = static_cast<size_t>(columns.group);
    const std::vector<RelaySum> &sums = layout.relays[group].sums;
    auto found = std::lower_bound(
        sums.begin(), sums.end(), columns.column,
        [](const RelaySum &sum, int64_t at) { return sum.column < at; });
    auto number = static_cast<size_t>(found - sums.begin());
    if (found == sums.end() || found->column != columns.column ||
        found->size != columns.cols.size() || isTaken[group][number])
      place.wrong("the columns of one sum of relay " + std::to_string(group) +
                  " that nothing else takes");
    isTaken[group][number] = true;
    return number;
  }

  void checkSources(size_t lookup, const RelayedColumns &columns, size_t sum) {
    const std::vector<RelaySource> &sources =
        layout.relays[static_cast<size_t>(columns.group)].sums[sum].sources;
    const ResultLayout &result = layout.results[lookup];
    int32_t last = -1;
    for (size_t i = 0; i < sources.size(); ++i) {
      auto wrong = [&](const std::string &expected) {
        sumPlace(columns.group, sum)["sources"].at(i).wrong(expected);
      };
      int32_t device =
          groups.group(columns.group)[static_cast<size_t>(sources[i].index)];
      const EntryLayout &entry = entryAt(device, sources[i].column);
      int64_t begin = entry.cols.begin + sources[i].column - entry.pooledColumn;
      if (entry.lookup != static_cast<int32_t>(lookup) ||
          begin != columns.cols.begin || entry.cols.end < columns.cols.end)
        wrong("columns " + boundsText(columns.cols) + " of lookup " +
              std::to_string(lookup));
      int32_t part = partOf(device, entry);
      if (part <= last)
        wrong("sources in the order of the result's parts, each once");
      last = part;
      int64_t &end = ends[static_cast<size_t>(part)];
      if (end != begin)
        wrong("columns from " + std::to_string(end) + " on of part " +
              std::to_string(part) + " of result " + std::to_string(lookup) +
              ", which enter relays in this order, each once");
      end = std::min(columns.cols.end,
                     result.parts[static_cast<size_t>(part)].cols.end);
    }
  }

  /// The relayed entry of a device that has a column of its relayed rows.
  const EntryLayout &entryAt(int32_t device, int64_t column) const {
    const auto &entries = layout.owners[static_cast<size_t>(device)].entries;
    const auto &relayed = relayedEntries[static_cast<size_t>(device)];
    auto next = std::upper_bound(
        relayed.begin(), relayed.end(), column, [&](int64_t at, int32_t i) {
          return at < entries[static_cast<size_t>(i)].pooledColumn;
        });
    return entries[static_cast<size_t>(*std::prev(next))];
  }

  int32_t partOf(int32_t device, const EntryLayout &entry) const {
    const auto &entries = layout.owners[static_cast<size_t>(device)].entries;
    return partOfEntry[static_cast<size_t>(device)]
                      [static_cast<size_t>(&entry - entries.data())];
  }

  const JsonValue &value;
  const DeviceGroups &groups;
  const ExchangeLayout &layout;
  /// Per group: whether a result takes the sum.
  std::vector<std::vector<bool>> isTaken;
  /// Per device, by their columns.
  std::vector<std::vector<int32_t>> relayedEntries;
  /// Per device and entry: number of the part in its result.
  std::vector<std::vector<int32_t>> partOfEntry;
  /// Per part of the result at hand: up to which column relays have added it.
  std::vector<int64_t> ends;
};

} // namespace

void checkBuckets(const JsonValue &value, const ExchangePlan &plan,
                  const ExchangeSpec &spec, const ExchangeLayout &layout) {
  for (size_t k = 0; k < spec.lookups.size(); ++k)
    checkRowsOfLookup(
        value, layout, k,
        plan.tables[static_cast<size_t>(spec.lookups[k].table)].rows);
  for (size_t device = 0; device < layout.owners.size(); ++device)
    for (const auto *sets : {&layout.owners, &layout.locals})
      checkStreams(value["devices"].at(device)["streams"], (*sets)[device]);
  for (size_t i = 0; i < layout.buckets.size(); ++i)
    if (layout.buckets[i].destinations.empty())
      value["buckets"].at(i).wrong("a bucket that some device receives");
}

void checkSegments(const JsonValue &value, const std::vector<Segment> &segments,
                   const std::vector<Range> &parts, int64_t width) {
  std::vector<int64_t> ends; // of each part's columns so far
  for (const Range &cols : parts)
    ends.push_back(cols.begin);
  int64_t end = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Range &cols = segments[i].cols;
    if (cols.begin != end)
      value.at(i)["cols"].wrong("columns from " + std::to_string(end) + " on");
    end = cols.end;
    int32_t last = -1;
    for (size_t j = 0; j < segments[i].parts.size(); ++j) {
      int32_t part = segments[i].parts[j];
      auto index = static_cast<size_t>(part);
      if (part <= last)
        value.at(i)["parts"].at(j).wrong(
            "parts in the order of the result's parts, each once");
      last = part;
      if (ends[index] != cols.begin || parts[index].end < cols.end)
        value.at(i)["parts"].at(j).wrong(
            "a part with columns " + boundsText(cols) +
            " and those before in the segments before");
      ends[index] = cols.end;
    }
  }
  if (end != width)
    value.wrong("each column of the table once");
  for (size_t i = 0; i < parts.size(); ++i)
    if (ends[i] != parts[i].end)
      value.wrong("columns " + boundsText(ends[i], parts[i].end) + " of part " +
                  std::to_string(i) + " in a segment");
}

void checkRelays(const JsonValue &value, const DeviceGroups &groups,
                 const ExchangeLayout &layout) {
  RelayChecker(value, groups, layout).check();
}

} // namespace neuroshard
