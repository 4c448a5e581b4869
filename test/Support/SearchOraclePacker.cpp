//===- SearchOraclePacker.cpp - Makes a plan of chosen forms --------------===//

#include "SearchOraclePacker.h"

#include "neuroshard/Model/TableFingerprint.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Verify.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace neuroshard;
using namespace neuroshard::oracle;

namespace {

constexpr int kTries = 60;

class Packer {
public:
  Packer(const ShardingProblem &problem, const Cases &cases,
         const std::vector<const OracleForm *> &chosen)
      : problem(problem), cases(cases), chosen(chosen) {}

  std::optional<ShardingPlan> run();

private:
  std::optional<ShardingPlan> attempt();
  void placeCertain();
  bool pourTable(size_t table);
  bool putWhole(size_t table);
  bool pour(size_t table, const Shard &rectangle, Mask on, bool everyDevice);
  std::vector<Shard> rectangles(size_t table);
  void put(size_t table, Shard shard);
  int64_t roomFor(size_t table, const Shard &shard, int device) const;
  std::vector<int> devicesOf(Mask mask);
  int64_t below(int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  }

  const ShardingProblem &problem;
  const Cases &cases;
  const std::vector<const OracleForm *> &chosen;
  std::mt19937_64 random{1};
  std::vector<int64_t> room;
  std::vector<Shard> shards;
};

void Packer::put(size_t table, Shard shard) {
  for (int device : shard.devices)
    room[static_cast<size_t>(device)] -= cases.bytes(table, shard);
  if (shard.name.empty()) {
    shard.name = shard.table;
    shard.name.append(":").append(std::to_string(shards.size()));
  }
  shards.push_back(std::move(shard));
}

void Packer::placeCertain() {
  room.clear();
  shards.clear();
  for (int device = 0; device < cases.devices(); ++device)
    room.push_back(cases.room(device));
  for (size_t table = 0; table < chosen.size(); ++table) {
    // Those of a form with a list of shards include what is written by hand.
    for (const Shard &shard : chosen[table]->shards.empty()
                                  ? cases.rules(table).fixed
                                  : chosen[table]->shards)
      put(table, shard);
    for (int64_t &left : room)
      left -= chosen[table]->everywhere;
  }
}

/// Devices in a random order, or the one with the least or most room first.
std::vector<int> Packer::devicesOf(Mask mask) {
  std::vector<int> list;
  for (int device = 0; device < cases.devices(); ++device)
    if (mask & bit(device))
      list.push_back(device);
  for (size_t i = list.size(); i > 1; --i)
    std::swap(list[i - 1],
              list[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
  int64_t how = below(3);
  if (how < 2)
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) {
      int64_t left = room[static_cast<size_t>(a)];
      int64_t right = room[static_cast<size_t>(b)];
      return how ? left < right : left > right;
    });
  return list;
}

/// The rest of a table, sometimes cut by columns where that is allowed.
std::vector<Shard> Packer::rectangles(size_t table) {
  const Rules &rule = cases.rules(table);
  Shard all = cases.whole(table);
  std::vector<Shard> list;
  auto add = [&](int64_t rowBegin, int64_t rowEnd, int64_t colBegin,
                 int64_t colEnd) {
    if (rowBegin >= rowEnd || colBegin >= colEnd)
      return;
    Shard shard = all;
    shard.rowBegin = rowBegin;
    shard.rowEnd = rowEnd;
    shard.colBegin = colBegin;
    shard.colEnd = colEnd;
    list.push_back(shard);
  };
  if (!rule.fixed.empty()) {
    // The generator writes one shard of a table by hand.
    const Shard &hand = rule.fixed.front();
    add(0, hand.rowBegin, 0, all.colEnd);
    add(hand.rowBegin, hand.rowEnd, 0, hand.colBegin);
    add(hand.rowBegin, hand.rowEnd, hand.colEnd, all.colEnd);
    add(hand.rowEnd, all.rowEnd, 0, all.colEnd);
    return list;
  }
  bool rowsOnly = rule.allows(ShardingKind::RowWise) ||
                  rule.allows(ShardingKind::TableRowWise);
  bool both = rule.allows(ShardingKind::RowColumn);
  int64_t quads = (all.colEnd + kColumnAlignment - 1) / kColumnAlignment;
  if (quads < 2 || !both || (rowsOnly && below(3) > 0)) {
    add(0, all.rowEnd, 0, all.colEnd);
    return list;
  }
  int64_t column = (1 + below(quads - 1)) * kColumnAlignment;
  if (column < rule.minWidth || all.colEnd - column < rule.minWidth)
    column = quads / 2 * kColumnAlignment;
  add(0, all.rowEnd, 0, column);
  add(0, all.rowEnd, column, all.colEnd);
  return list;
}

/// Bytes left on a device with one more shard.
int64_t Packer::roomFor(size_t table, const Shard &shard, int device) const {
  return room[static_cast<size_t>(device)] - cases.bytes(table, shard);
}

/// Cuts a rectangle by rows and fills one device after the other.
bool Packer::pour(size_t table, const Shard &rectangle, Mask on,
                  bool everyDevice) {
  std::vector<int> list = devicesOf(on);
  Shard rest = rectangle;
  for (size_t i = 0; i < list.size() && rest.rowBegin < rest.rowEnd; ++i) {
    int64_t keep = everyDevice ? static_cast<int64_t>(list.size() - i) - 1 : 0;
    int64_t low = 0, high = rest.rows() - keep;
    Shard part = rest;
    part.devices = {list[i]};
    while (low < high) {
      int64_t middle = low + (high - low + 1) / 2;
      part.rowEnd = rest.rowBegin + middle;
      if (roomFor(table, part, list[i]) >= 0)
        low = middle;
      else
        high = middle - 1;
    }
    if (low == 0)
      continue;
    part.rowEnd = rest.rowBegin + low;
    rest.rowBegin = part.rowEnd;
    put(table, part);
  }
  return rest.rowBegin >= rest.rowEnd;
}

/// Puts a rectangle on the first device with room for all of it.
bool Packer::putWhole(size_t table) {
  const Rules &rule = cases.rules(table);
  if (!rule.allows(ShardingKind::TableWise) || !rule.fixed.empty())
    return false;
  for (int device : devicesOf(chosen[table]->relaxedOn)) {
    Shard shard = cases.whole(table);
    shard.devices = {device};
    if (roomFor(table, shard, device) < 0)
      continue;
    put(table, shard);
    return true;
  }
  return false;
}

bool Packer::pourTable(size_t table) {
  const OracleForm &form = *chosen[table];
  bool wanted = form.exactSupport;
  if (!wanted && below(2) > 0 && putWhole(table))
    return true;
  Mask on = form.relaxedOn;
  for (const Shard &rectangle : rectangles(table))
    if (!pour(table, rectangle, on, wanted))
      return false;
  return true;
}

std::optional<ShardingPlan> Packer::attempt() {
  placeCertain();
  std::vector<size_t> order;
  for (size_t table = 0; table < chosen.size(); ++table)
    if (chosen[table]->shards.empty())
      order.push_back(table);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
  for (size_t table : order)
    if (!pourTable(table))
      return std::nullopt;
  ShardingPlan plan;
  plan.shards = shards;
  plan.deviceCount = cases.devices();
  plan.optimizerSemantics = problem.optimizerSemantics;
  plan.fingerprint = tableFingerprint(problem.tables);
  if (!verify(plan, problem).empty())
    return std::nullopt;
  return plan;
}

std::optional<ShardingPlan> Packer::run() {
  bool relaxation =
      std::any_of(chosen.begin(), chosen.end(),
                  [](const OracleForm *m) { return m->shards.empty(); });
  for (int i = 0; i < (relaxation ? kTries : 1); ++i)
    if (auto plan = attempt())
      return plan;
  return std::nullopt;
}

} // namespace

std::optional<ShardingPlan>
neuroshard::oracle::pack(const ShardingProblem &problem, const Cases &cases,
                         const std::vector<const OracleForm *> &chosen) {
  return Packer(problem, cases, chosen).run();
}
