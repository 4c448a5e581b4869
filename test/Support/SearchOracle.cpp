//===- SearchOracle.cpp - Decides whether a problem has a plan ------------===//

#include "SearchOracle.h"

#include "SearchOracleForms.h"
#include "SearchOraclePacker.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/PlanMemory.h"

#include <algorithm>
#include <numeric>

using namespace neuroshard;
using namespace neuroshard::oracle;

namespace {

constexpr int64_t kMaxNodes = 200'000;
/// Combinations with relaxations for which a plan is tried, at most.
constexpr int kMaxPours = 12;

/// Decides by augmenting paths whether the relaxations can be spread so that no
/// device gets more than its room.
class Flow {
public:
  Flow(std::vector<int64_t> room, size_t relaxations)
      : room(std::move(room)),
        poured(relaxations, std::vector<int64_t>(this->room.size())),
        masks(relaxations) {}

  bool add(size_t relaxation, int64_t amount, Mask on) {
    masks[relaxation] = on;
    while (amount > 0) {
      std::vector<bool> seen(masks.size());
      int64_t moved = push(relaxation, amount, seen);
      if (moved == 0)
        return false;
      amount -= moved;
    }
    return true;
  }

private:
  /// Places up to `amount` more of a relaxation, moving others if needed.
  int64_t push(size_t relaxation, int64_t amount, std::vector<bool> &seen) {
    seen[relaxation] = true;
    for (size_t d = 0; d < room.size(); ++d) {
      if (!(masks[relaxation] & bit(static_cast<int>(d))))
        continue;
      int64_t moved = std::min(amount, room[d]);
      if (moved > 0) {
        room[d] -= moved;
        poured[relaxation][d] += moved;
        return moved;
      }
    }
    for (size_t d = 0; d < room.size(); ++d) {
      if (!(masks[relaxation] & bit(static_cast<int>(d))))
        continue;
      for (size_t other = 0; other < masks.size(); ++other) {
        if (seen[other] || poured[other][d] == 0)
          continue;
        int64_t moved = push(other, std::min(amount, poured[other][d]), seen);
        if (moved == 0)
          continue;
        poured[other][d] -= moved;
        poured[relaxation][d] += moved;
        return moved;
      }
    }
    return 0;
  }

  std::vector<int64_t> room;
  std::vector<std::vector<int64_t>> poured;
  std::vector<Mask> masks;
};

class Judge {
public:
  explicit Judge(const ShardingProblem &problem)
      : original(problem), cases(problem), chosen(problem.tables.size()) {}

  Judgement run();

private:
  bool hostsFit() const;
  void sortTables();
  void next(size_t depth);
  bool compatible(size_t table, const OracleForm &form) const;
  bool fits(size_t depth) const;
  void leaf();
  bool done() const {
    return answer.verdict == Verdict::Feasible || answer.nodes > kMaxNodes ||
           pours > kMaxPours;
  }

  const ShardingProblem &original;
  Cases cases;
  std::vector<std::vector<OracleForm>> forms;
  std::vector<size_t> order;
  std::vector<const OracleForm *> chosen;
  /// Least bytes of the tables from each depth on.
  std::vector<int64_t> leastFrom;
  int pours = 0;
  Judgement answer;
};

bool Judge::hostsFit() const {
  const Topology &topology = original.topology;
  std::vector<int64_t> used =
      planMemory(original, original.constraints.fixedShards).hostBytes;
  for (size_t host = 0; host < used.size(); ++host)
    if (used[host] > topology.hosts[host].memoryBytes)
      return false;
  return true;
}

/// Sorts the tables with the fewest forms first.
void Judge::sortTables() {
  order.resize(forms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return forms[a].size() < forms[b].size();
  });
  leastFrom.assign(order.size() + 1, 0);
  for (size_t depth = order.size(); depth-- > 0;) {
    int64_t least = INT64_MAX;
    for (const OracleForm &form : forms[order[depth]])
      least = std::min(
          least, std::accumulate(form.bytes.begin(), form.bytes.end(),
                                 form.relaxation +
                                     form.everywhere * static_cast<int64_t>(
                                                           cases.devices())));
    leastFrom[depth] = leastFrom[depth + 1] + least;
  }
}

/// Does a form agree with the devices of the tables chosen before?
bool Judge::compatible(size_t table, const OracleForm &form) const {
  int index = static_cast<int>(table);
  auto others = [&](const std::vector<int> &set, auto agree) {
    if (std::count(set.begin(), set.end(), index) == 0)
      return true;
    return std::all_of(set.begin(), set.end(), [&](int other) {
      const OracleForm *there = chosen[static_cast<size_t>(other)];
      return other == index || !there || agree(*there);
    });
  };
  for (const std::vector<int> &set : original.constraints.separate)
    if (!others(set, [&](const OracleForm &there) {
          return !form.exactSupport || !there.exactSupport ||
                 (form.support & there.support) == 0;
        }))
      return false;
  for (const std::vector<int> &set : original.constraints.coLocate)
    if (!others(set, [&](const OracleForm &there) {
          if (form.exactSupport && there.exactSupport)
            return form.support == there.support;
          return (form.support & there.support) != 0;
        }))
      return false;
  return true;
}

bool Judge::fits(size_t depth) const {
  std::vector<int64_t> room;
  for (int device = 0; device < cases.devices(); ++device) {
    int64_t left = cases.room(device);
    for (size_t i = 0; i < depth; ++i)
      left -= chosen[order[i]]->bytes[static_cast<size_t>(device)] +
              chosen[order[i]]->everywhere;
    if (left < 0)
      return false;
    room.push_back(left);
  }
  int64_t total = std::accumulate(room.begin(), room.end(), int64_t{0});
  for (size_t i = 0; i < depth; ++i)
    total -= chosen[order[i]]->relaxation;
  if (total < leastFrom[depth])
    return false;
  Flow flow(std::move(room), depth);
  for (size_t i = 0; i < depth; ++i)
    if (const OracleForm &form = *chosen[order[i]];
        !flow.add(i, form.relaxation, form.relaxedOn))
      return false;
  return true;
}

/// Handles a combination without conflicts: it is a plan or, with relaxations,
/// a possible one.
void Judge::leaf() {
  bool relaxation =
      std::any_of(chosen.begin(), chosen.end(), [](const OracleForm *m) {
        return m->relaxation > 0 || m->shards.empty();
      });
  pours += relaxation;
  if (auto plan = pack(original, cases, chosen)) {
    answer.verdict = Verdict::Feasible;
    answer.plan = std::move(*plan);
  } else if (!relaxation) {
    // A combination without conflicts is a plan; if not, decide nothing.
    pours = kMaxPours + 1;
  }
}

void Judge::next(size_t depth) {
  ++answer.nodes;
  if (depth == order.size())
    return leaf();
  size_t table = order[depth];
  for (const OracleForm &form : forms[table]) {
    if (done())
      return;
    if (!compatible(table, form))
      continue;
    chosen[table] = &form;
    if (fits(depth + 1))
      next(depth + 1);
    chosen[table] = nullptr;
  }
}

Judgement Judge::run() {
  answer.verdict = Verdict::Infeasible;
  for (int device = 0; device < cases.devices(); ++device)
    if (cases.room(device) < 0)
      return answer;
  if (!hostsFit())
    return answer;
  for (size_t table = 0; table < original.tables.size(); ++table) {
    forms.push_back(cases.forms(table));
    if (forms.back().empty())
      return answer;
  }
  sortTables();
  next(0);
  if (answer.verdict == Verdict::Infeasible &&
      (pours > 0 || answer.nodes > kMaxNodes))
    answer.verdict = Verdict::Undecided;
  return answer;
}

} // namespace

Judgement neuroshard::judge(const ShardingProblem &problem) {
  return Judge(problem).run();
}
