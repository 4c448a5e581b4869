//===- TorchRec.cpp - TorchRec's planner ----------------------------------===//
///
/// \file
/// The algorithm of TorchRec's EmbeddingShardingPlanner with the costs of our
/// models. It enumerates options with a cost and a size for each table.
/// Proposals of one option per table come from the full grid (when it is
/// small), from two greedy walks and from one kind for all tables. A greedy
/// partitioner places each proposal, and the cheapest plan wins. Column shards
/// have one width, min_partition: the table's min_width, or else 128
/// (TorchRec's default), 64 and 32 in turn, as a user who tunes that setting
/// would try.
//===----------------------------------------------------------------------===//

#include "Baselines.h"
#include "Forms/TableForms.h"
#include "Units/SearchThreads.h"
#include "Units/UnitStore.h"

#include <algorithm>
#include <map>
#include <set>

using namespace neuroshard;

namespace {

constexpr int64_t kMinPartitions[] = {128, 64, 32};
/// A grid with more proposals is not searched, as in TorchRec.
constexpr double kMaxGrid = 1e4;
/// Limits on work: shards placed in all, and in one proposal.
constexpr size_t kMaxPlaced = 3'000'000;
constexpr size_t kMaxShards = 200'000;
/// Proposals placed at a time.
constexpr size_t kBatch = 64;

constexpr FormKind kKinds[] = {
    FormKind::Replicated, FormKind::TableWise,       FormKind::ColumnWise,
    FormKind::RowWise,    FormKind::TableColumnWise, FormKind::TableRowWise,
    FormKind::Grid};

/// A sharding option: a form of a table with its cost and size.
struct Option {
  TableForm form;
  /// Cost of the costliest shard / of all shards.
  double depthMs = 0;
  double sumMs = 0;
  int64_t largestBytes = 0;
  int64_t sumBytes = 0;
};

/// Options of each table.
using Space = std::vector<std::vector<Option>>;
/// A proposal: an option of each table.
using Proposal = std::vector<int>;

/// TorchRec's width of column shards: the smallest divisor of the dim that is a
/// multiple of 4 and at least the minimum, or else the dim.
int64_t blockWidth(int64_t dim, int64_t minimum) {
  for (int64_t width = minimum; width < dim; ++width)
    if (dim % width == 0 && width % kColumnAlignment == 0)
      return width;
  return dim;
}

/// Cost of a shard: its compute alone on a device and the time by which it
/// alone lengthens the exchanges. Costs add up over shards, as in TorchRec.
class ShardCosts {
public:
  explicit ShardCosts(const SearchContext &context) : context(context) {
    std::vector<DeviceLoad> idle(static_cast<size_t>(context.deviceCount));
    idleMs = exchangeMs(idle);
  }

  double operator()(const Unit &unit) {
    return costs.get({static_cast<int64_t>(unit.sizeKey)}, [&] {
      std::vector<DeviceLoad> loads(static_cast<size_t>(context.deviceCount));
      loads.front() = unit.load;
      return unit.aloneMs() + std::max(0.0, exchangeMs(loads) - idleMs);
    });
  }

private:
  double exchangeMs(const std::vector<DeviceLoad> &loads) const {
    double sum = 0;
    for (Direction direction : {Direction::Forward, Direction::Backward}) {
      Traffic traffic = trafficOf(context.problem.topology, loads, direction);
      sum += context.model.communicationMs(traffic, {}, direction).front();
    }
    return sum;
  }

  const SearchContext &context;
  double idleMs = 0;
  OnceMap<std::array<int64_t, 1>, double, HashNumbers<1>> costs;
};

/// Ranks options in the order in which TorchRec tries them.
enum class Score { Depth, Sum };

class TorchRecSearch {
public:
  TorchRecSearch(const SearchContext &context,
                 const std::vector<UnitPtr> &units)
      : context(context), entries(formEntries(context, units)), costs(context) {
  }

  SearchOutcome run();

private:
  Space enumerate(int64_t minPartition);
  Option optionOf(TableForm form);
  void proposeUniform(const Space &space);
  void proposeGreedily(const Space &space, Score score);
  void proposeGrid(const Space &space);
  void propose(const Space &space, const Proposal &proposal);
  void placeWaiting(const Space &space);
  std::optional<SearchState>
  partition(const Space &space, const Proposal &proposal, UnitPtr &blocking);
  /// Has the deadline passed, after a first plan was found?
  bool stopped() const {
    return spent || (outcome.state && context.deadlinePassed());
  }

  const SearchContext &context;
  std::vector<FormEntry> entries;
  ShardCosts costs;
  std::vector<Proposal> waiting;
  std::set<Proposal> seen;
  size_t placedShards = 0;
  int64_t placeable = 0;
  int64_t tooLarge = 0;
  bool spent = false;
  double bestMs = 0;
  SearchOutcome outcome;
};

Option TorchRecSearch::optionOf(TableForm form) {
  Option option;
  for (const UnitPtr &piece : form.units) {
    std::vector<UnitPtr> ends = {piece};
    double middle = 0;
    // All blocks but the last are equal.
    if (form.cutsRows()) {
      std::vector<UnitPtr> blocks =
          blocksOf(context, *piece, form.groups.front().size());
      ends = {blocks.front(), blocks.back()};
      middle = static_cast<double>(blocks.size()) - 2;
    }
    for (const UnitPtr &end : ends) {
      double ms = costs(*end);
      option.depthMs = std::max(option.depthMs, ms);
      option.sumMs += ms;
      option.sumBytes += end->peakBytes();
      option.largestBytes = std::max(option.largestBytes, end->peakBytes());
    }
    option.sumMs += middle * costs(*ends.front());
    option.sumBytes += static_cast<int64_t>(middle) * ends.front()->peakBytes();
  }
  option.form = std::move(form);
  return option;
}

Space TorchRecSearch::enumerate(int64_t minPartition) {
  Space space;
  for (FormEntry &entry : entries) {
    std::vector<Option> &options = space.emplace_back();
    for (FormKind kind : kKinds) {
      if (entry.table < 0)
        break;
      int64_t dim = context.table(entry.table).dim;
      int64_t minWidth = context.rulesOf(entry.table).minWidth;
      int64_t width = blockWidth(dim, minWidth > 1 ? minWidth : minPartition);
      if (auto form = makeForm(context, entry.table, kind, width))
        options.push_back(optionOf(std::move(*form)));
    }
    if (options.empty())
      options.push_back(optionOf(entry.given));
  }
  return space;
}

std::optional<SearchState> TorchRecSearch::partition(const Space &space,
                                                     const Proposal &proposal,
                                                     UnitPtr &blocking) {
  std::vector<const TableForm *> forms;
  std::map<const TableForm *, double> bytes;
  for (size_t i = 0; i < space.size(); ++i) {
    const Option &option = space[i][static_cast<size_t>(proposal[i])];
    forms.push_back(&option.form);
    bytes[&option.form] = static_cast<double>(option.sumBytes);
  }
  return placeForms(
      context, forms, [&](const TableForm &form) { return bytes.at(&form); },
      [&](const Unit &unit) { return costs(unit); }, blocking);
}

void TorchRecSearch::propose(const Space &space, const Proposal &proposal) {
  if (stopped() || !seen.insert(proposal).second)
    return;
  size_t shards = 0;
  for (size_t i = 0; i < space.size(); ++i)
    shards += space[i][static_cast<size_t>(proposal[i])].form.shardCount();
  if (shards > kMaxShards) {
    ++tooLarge;
    return;
  }
  placedShards += shards;
  spent = placedShards > kMaxPlaced;
  waiting.push_back(proposal);
  if (waiting.size() >= kBatch)
    placeWaiting(space);
}

void TorchRecSearch::placeWaiting(const Space &space) {
  std::vector<std::optional<SearchState>> states(waiting.size());
  std::vector<UnitPtr> blocking(waiting.size());
  std::vector<double> costsMs(waiting.size());
  context.pool().forEach(waiting.size(), [&](size_t i) {
    states[i] = partition(space, waiting[i], blocking[i]);
    if (states[i])
      costsMs[i] = states[i]->costMs();
  });
  for (size_t i = 0; i < waiting.size(); ++i) {
    ++outcome.evaluations;
    if (!states[i]) {
      outcome.blocking = blocking[i];
      continue;
    }
    ++placeable;
    if (outcome.state && costsMs[i] >= bestMs)
      continue;
    bestMs = costsMs[i];
    outcome.state = std::move(states[i]);
  }
  waiting.clear();
}

void TorchRecSearch::proposeUniform(const Space &space) {
  for (FormKind kind : kKinds) {
    Proposal proposal;
    for (const std::vector<Option> &options : space)
      for (size_t i = 0; i < options.size(); ++i)
        if (options[i].form.kind == kind ||
            options[i].form.kind == FormKind::AsGiven)
          proposal.push_back(static_cast<int>(i));
    if (proposal.size() == space.size())
      propose(space, proposal);
  }
}

/// TorchRec's walk by memory: begins with the cheapest option of each table;
/// then the table that takes the most memory goes on to its next option.
void TorchRecSearch::proposeGreedily(const Space &space, Score score) {
  std::vector<Proposal> order;
  for (const std::vector<Option> &options : space) {
    Proposal &ranks = order.emplace_back();
    for (size_t i = 0; i < options.size(); ++i)
      ranks.push_back(static_cast<int>(i));
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
      const Option &x = options[static_cast<size_t>(a)];
      const Option &y = options[static_cast<size_t>(b)];
      return score == Score::Depth ? x.depthMs < y.depthMs : x.sumMs < y.sumMs;
    });
  }
  std::vector<size_t> rank(space.size());
  Proposal proposal;
  using Size = std::tuple<int64_t, int64_t, size_t>;
  std::set<Size> byMemory;
  auto enter = [&](size_t table) {
    const Option &option =
        space[table][static_cast<size_t>(order[table][rank[table]])];
    if (rank[table] + 1 < order[table].size())
      byMemory.insert({-option.largestBytes, -option.sumBytes, table});
  };
  for (size_t table = 0; table < space.size(); ++table) {
    proposal.push_back(order[table].front());
    enter(table);
  }
  propose(space, proposal);
  while (!byMemory.empty() && !stopped()) {
    size_t table = std::get<2>(*byMemory.begin());
    byMemory.erase(byMemory.begin());
    proposal[table] = order[table][++rank[table]];
    enter(table);
    propose(space, proposal);
  }
}

void TorchRecSearch::proposeGrid(const Space &space) {
  double count = 1;
  for (const std::vector<Option> &options : space)
    count *= static_cast<double>(options.size());
  if (count > kMaxGrid)
    return;
  Proposal proposal(space.size());
  size_t table = 0;
  while (table < space.size() && !stopped()) {
    propose(space, proposal);
    table = 0;
    while (table < space.size() &&
           ++proposal[table] == static_cast<int>(space[table].size()))
      proposal[table++] = 0;
  }
}

SearchOutcome TorchRecSearch::run() {
  for (int64_t minPartition : kMinPartitions) {
    Space space = enumerate(minPartition);
    seen.clear();
    double before = outcome.state ? bestMs : 0;
    proposeUniform(space);
    proposeGreedily(space, Score::Depth);
    proposeGreedily(space, Score::Sum);
    proposeGrid(space);
    placeWaiting(space);
    if (outcome.state && (before == 0 || bestMs < before))
      outcome.tried.push_back("column pieces of at least " +
                              std::to_string(minPartition) + ": " +
                              formatMs(bestMs));
    if (stopped())
      break;
  }
  outcome.stopReason = std::to_string(outcome.evaluations) +
                       " proposals, of which " + std::to_string(placeable) +
                       " could be placed";
  if (tooLarge > 0)
    outcome.stopReason += "; " + std::to_string(tooLarge) + " with more than " +
                          std::to_string(kMaxShards) + " shards left out";
  if (spent)
    outcome.stopReason +=
        "; " + std::to_string(kMaxPlaced) + " shards placed, the limit";
  else if (context.deadlinePassed())
    outcome.stopReason += "; deadline";
  return std::move(outcome);
}

} // namespace

SearchOutcome neuroshard::searchTorchRec(const SearchContext &context,
                                         const std::vector<UnitPtr> &units) {
  return TorchRecSearch(context, units).run();
}
