//===- LinkArrivals.cpp - When an exchange has come, link by link ---------===//
///
/// \file
/// The formulas are in docs/planner.md.
//===----------------------------------------------------------------------===//

#include "LinkLevels.h"
#include "RooflineCommunication.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace neuroshard;

namespace {

/// A link of bytes that wait for their senders' starts.
class Releases {
public:
  Releases(std::span<const double> startsMs, std::span<const double> bytes) {
    std::vector<std::pair<double, double>> senders;
    for (size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] > 0)
        senders.emplace_back(startsMs[i], bytes[i]);
    auto isEarlier = [](const auto &a, const auto &b) {
      return a.first < b.first;
    };
    if (!std::is_sorted(senders.rbegin(), senders.rend(), isEarlier))
      std::sort(senders.rbegin(), senders.rend(), isEarlier);
    for (auto [start, one] : senders) {
      total += one;
      if (sinceStart.empty() || sinceStart.back().first != start)
        sinceStart.emplace_back(start, total);
      sinceStart.back().second = total;
    }
  }

  /// When the link has moved all, which takes it `ms` without a pause: from
  /// some start on it never pauses, and moves what starts then or later.
  double endMs(double ms) {
    if (ms == lastMs)
      return lastEnd;
    lastMs = ms;
    lastEnd = 0;
    double perByte = total > 0 ? ms / total : 0;
    for (auto [start, bytes] : sinceStart)
      lastEnd = std::max(lastEnd, start + perByte * bytes);
    return lastEnd;
  }

private:
  /// Starts, the latest first, and the bytes from then on.
  std::vector<std::pair<double, double>> sinceStart;
  double total = 0;
  /// Owners of results get as much as each other.
  double lastMs = -1, lastEnd = 0;
};

/// Of each of the loads on a link that they share fairly, what has moved when
/// it ends: of each other load as much as of itself, or all.
std::vector<double> movedAtEnds(std::span<const double> loads) {
  std::vector<size_t> order(loads.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return loads[a] < loads[b]; });
  std::vector<double> moved(loads.size());
  double ended = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    moved[order[i]] =
        ended + loads[order[i]] * static_cast<double>(order.size() - i);
    ended += loads[order[i]];
  }
  return moved;
}

/// The arrivals of one exchange over one level's links.
class LevelArrivals {
public:
  LevelArrivals(const Traffic &traffic, std::span<const double> startsMs)
      : sent(LinkBytes::out(traffic)), received(LinkBytes::in(traffic)),
        startsMs(startsMs), all(startsMs, sent.all()),
        extras(*traffic.topology), innermost(&traffic.topology->levels.back()),
        share(1 / static_cast<double>(startsMs.size())) {}

  /// When the last device of a group has sent to its peers.
  double sentMs(const TopologyLevel &level, const InnerGroup &group) {
    auto out = sent.over(&level == innermost).subspan(group.first, group.size);
    auto starts = startsMs.subspan(group.first, group.size);
    double groupMs = 0, groupEnd = 0;
    if (level.groupBandwidthGBps > 0) {
      double sum = std::accumulate(out.begin(), out.end(), 0.0);
      groupMs = linkMs(level.groupBandwidthGBps, group, sum);
      groupEnd = Releases(starts, out).endMs(groupMs);
    }
    double end = 0;
    for (size_t i = 0; i < group.size; ++i) {
      double ms = linkMs(level.bandwidthGBps, group, out[i]);
      if (ms > 0)
        end = std::max(end, std::max(starts[i] + ms, groupEnd) +
                                besideMs(level, group, std::max(ms, groupMs),
                                         sent.toItself(group.first + i)));
    }
    return end;
  }

  /// Raises the times of a group's devices to when they have received from
  /// their peers.
  void addReceived(const TopologyLevel &level, const InnerGroup &group,
                   std::span<double> times) {
    auto in =
        received.over(&level == innermost).subspan(group.first, group.size);
    std::vector<double> moved;
    if (level.groupBandwidthGBps > 0)
      moved = movedAtEnds(in);
    for (size_t i = 0; i < group.size; ++i) {
      double ms = linkMs(level.bandwidthGBps, group, in[i]);
      if (!moved.empty())
        ms = std::max(ms, linkMs(level.groupBandwidthGBps, group, moved[i]));
      double &time = times[group.first + i];
      if (ms > 0)
        time = std::max(time, all.endMs(ms) +
                                  besideMs(level, group, ms,
                                           received.toItself(group.first + i)));
    }
  }

  std::span<const double> receivedBytes() const { return received.all(); }

private:
  double linkMs(double bandwidthGBps, const InnerGroup &group,
                double bytes) const {
    return bytesToMs(bytes * group.peers * share, bandwidthGBps);
  }
  double besideMs(const TopologyLevel &level, const InnerGroup &group,
                  double linkMs, double ownBytes) {
    return besideLinkMs(level, extras.of(group.first, level), linkMs, ownBytes);
  }

  LinkBytes sent, received;
  std::span<const double> startsMs;
  Releases all;
  ExtraFinder extras;
  const TopologyLevel *innermost;
  double share;
};

/// Whether some devices have other links than others, or share theirs. Else
/// what a device receives takes no less than what is sent to it.
bool areUneven(std::span<const TopologyLevel> levels) {
  return std::any_of(levels.begin(), levels.end(),
                     [](const TopologyLevel &level) {
                       return level.groupBandwidthGBps > 0 ||
                              std::adjacent_find(level.groupSizes.begin(),
                                                 level.groupSizes.end(),
                                                 std::not_equal_to<>()) !=
                                  level.groupSizes.end();
                     });
}

std::vector<double> arrivalsOver(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 Direction direction) {
  LevelArrivals arrivals(traffic, startsMs);
  std::vector<double> times(startsMs.begin(), startsMs.end());
  std::span<const TopologyLevel> levels = traffic.topology->levels;
  bool isForward = direction == Direction::Forward;
  bool asksSenders = isForward || areUneven(levels);
  double lastSent = 0;
  forEachInnerGroup(levels, [&](size_t level, const InnerGroup &group) {
    if (asksSenders)
      lastSent = std::max(lastSent, arrivals.sentMs(levels[level], group));
    arrivals.addReceived(levels[level], group, times);
  });
  if (isForward) {
    for (double &time : times)
      time = std::max(time, lastSent);
  } else if (lastSent > 0) {
    // A sender shares its link fairly among the owners of its gradients.
    std::vector<double> moved = movedAtEnds(arrivals.receivedBytes());
    double most = *std::max_element(moved.begin(), moved.end());
    for (size_t d = 0; d < times.size(); ++d)
      times[d] = std::max(times[d], lastSent * moved[d] / most);
  }
  return times;
}

} // namespace

std::vector<double> neuroshard::linkArrivalsMs(const Traffic &traffic,
                                               std::span<const double> startsMs,
                                               double evenMs,
                                               Direction direction) {
  auto largest = [](const std::vector<double> &values) {
    return *std::max_element(values.begin(), values.end());
  };
  bool isEven = std::all_of(startsMs.begin(), startsMs.end(),
                            [](double start) { return start == 0; });
  std::vector<double> times;
  if (isEven)
    times = arrivalsOver(traffic, startsMs, direction);
  double ofLinks = largest(isEven ? times : linkTimesMs(traffic));
  double slowness = ofLinks > 0 && evenMs > 0 ? evenMs / ofLinks : 1;
  if (!isEven) {
    // In units of time that are as much longer, only the starts differ.
    std::vector<double> starts(startsMs.begin(), startsMs.end());
    for (double &start : starts)
      start /= slowness;
    times = arrivalsOver(traffic, starts, direction);
  }
  for (double &time : times)
    time *= slowness;
  return times;
}
