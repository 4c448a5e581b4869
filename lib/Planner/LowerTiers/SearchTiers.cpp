//===- SearchTiers.cpp - Searches that may use lower tiers ----------------===//

#include "SearchTiers.h"

#include "ChooseTiers.h"
#include "ExplainTiers.h"
#include "GrowCaches.h"
#include "ImproveTiers.h"
#include "Units/SearchContext.h"
#include "neuroshard/Planner/PlanMemory.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <utility>

using namespace neuroshard;

namespace {

/// Shares of devices and hosts that are planned with, one after the other until
/// there is a plan: pieces do not fill all alike. What is left of devices goes
/// to caches.
constexpr double kFilled[] = {0.95, 0.9, 0.8, 0.7};
/// Those of small problems, all of which are tried.
constexpr double kSmallFilled[] = {1, 0.97, 0.93, 0.88, 0.8, 0.7};
/// Problems of up to so many tables times devices are searched for each choice
/// of tiers that differs from the best in one table.
constexpr size_t kSmallProblem = 64;
/// A plan is better if its cost is below the best one's times this.
constexpr double kGain = 1 - 1e-6;
/// Choices whose fetches take longer than this times the best plan's step are
/// not searched. Fetches are part of a step; caches that grow shorten them.
constexpr double kHopeless = 2;

Cuts cutsOf(Algorithm algorithm) {
  switch (algorithm) {
  case Algorithm::Random:
  case Algorithm::Dim:
  case Algorithm::Size:
  case Algorithm::Lookup:
  case Algorithm::SizeLookup:
  case Algorithm::DreamShard:
    return Cuts::None;
  default:
    return Cuts::Any;
  }
}

/// Runs one search after the other within the deadline of all, and until the
/// receiver of progress ends one.
class SearchesInTime {
public:
  SearchesInTime(const SearchOptions &given, const TierlessSearch &search)
      : given(given), search(search), each(given) {
    each.lowerTiers.clear();
    if (given.progress)
      each.progress = [this](SearchProgress progress) {
        share = progress.share = std::max(share, progress.share);
        isStopped = isStopped || !this->given.progress(progress);
        return !isStopped;
      };
  }

  tl::expected<SearchResult, PlanningError>
  operator()(const ShardingProblem &problem, Restarts restarts) {
    if (given.deadlineSeconds)
      each.deadlineSeconds = std::max(0.0, secondsLeft());
    return search(problem, each, restarts);
  }

  bool isOver() const {
    return isStopped || (given.deadlineSeconds && secondsLeft() <= 0);
  }

private:
  double secondsLeft() const {
    std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - start;
    return *given.deadlineSeconds - passed.count();
  }

  const SearchOptions &given;
  const TierlessSearch &search;
  SearchOptions each;
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  double share = 0;
  bool isStopped = false;
};

class TierSearch {
public:
  TierSearch(const ShardingProblem &problem, const CostModel &model,
             const SearchOptions &options, SearchesInTime &search,
             std::span<const Tier> tiers)
      : problem(problem), model(model), options(options), search(search),
        tiers(tiers.begin(), tiers.end()),
        tables(
            tierOptions(summarized(problem), tiers, cutsOf(options.algorithm))),
        rooms(roomsForTables(summarized(problem), tiers)),
        restarts(isSmall() ? Restarts::Few : Restarts::Many) {}

  /// `why`: why there is no plan without lower tiers.
  tl::expected<SearchResult, PlanningError> run(PlanningError why) {
    tryShares();
    if (!best && isSmall()) {
      restarts = Restarts::Many;
      hasPlan.clear();
      tryShares();
    }
    if (!best && search.isOver())
      failure = "the search was ended before there was one";
    if (!best) {
      why.details.push_back(whyNoTiers(tables, rooms.front(), failure));
      return tl::unexpected(std::move(why));
    }
    if (isSmall()) {
      descend();
      improve(*best);
    }
    best->evaluations = evaluations;
    best->seconds = seconds;
    return std::move(*best);
  }

private:
  void tryShares() {
    for (double share : shares())
      for (const TierBytes &room : rooms)
        if (isSmall() || !best)
          tryChoice(tables, room, share);
  }

  bool isSmall() const {
    return tables.size() * problem.topology.devices.size() <= kSmallProblem;
  }

  std::span<const double> shares() const {
    return isSmall() ? std::span<const double>(kSmallFilled)
                     : std::span<const double>(kFilled);
  }

  /// Tier and rows of the cache of each table.
  using Tiers = std::vector<std::pair<Tier, int64_t>>;

  static Tiers tiersOf(const std::vector<TieredTable> &some,
                       const TierChoice &choice) {
    Tiers tiers;
    for (size_t i = 0; i < some.size(); ++i) {
      const TierOption &option = some[i].options[choice.options[i]];
      tiers.emplace_back(option.tier, option.cacheRows);
    }
    return tiers;
  }

  /// One host holds all to the last byte.
  TierBytes partOf(const TierBytes &room, double share) const {
    double ofHosts = problem.topology.hosts.size() == 1 ? 1 : share;
    return {share * room.device, ofHosts * room.host, ofHosts * room.disk};
  }

  /// Plans with the chosen options of `some` with this share of the room, and
  /// keeps the plan if it is the best. Returns whether there is one.
  bool tryChoice(const std::vector<TieredTable> &some, const TierBytes &room,
                 double share) {
    std::optional<TierChoice> choice = chooseTiers(some, partOf(room, share));
    if (!choice || search.isOver())
      return false;
    if (best && choice->ms > kHopeless * best->breakdown.costMs)
      return false;
    auto [tried, isNew] = hasPlan.try_emplace(tiersOf(some, *choice), false);
    if (!isNew)
      return tried->second;
    auto result = search(withTiers(problem, some, *choice), restarts);
    if (!result) {
      failure = result.error().message;
      return false;
    }
    tried->second = true;
    evaluations += result->evaluations;
    seconds += result->seconds;
    finish(*result);
    if (!best || result->breakdown.costMs < best->breakdown.costMs * kGain)
      best = std::move(*result);
    return true;
  }

  void finish(SearchResult &result) const {
    growCaches(summarized(problem), result.plan);
    measure(result);
  }

  void measure(SearchResult &result) const {
    result.breakdown = evaluate(problem, result.plan, model, options.objective);
    result.memory = planMemory(problem, result.plan.shards);
    result.plan.provenance.predictedCostMs = result.breakdown.costMs;
  }

  /// Moves whole shards, and chooses tiers and caches anew.
  void improve(SearchResult &result) const {
    SearchContext context(problem, model, options);
    improveTiers(
        context, tables, tiers, [&] { return search.isOver(); }, result.plan);
    measure(result);
  }

  /// Puts one table after the other into another tier, and the others where
  /// they are best then, as long as the plan gets better.
  void descend() {
    std::vector<TieredTable> forced = tables;
    for (bool improves = true; improves;) {
      improves = false;
      for (size_t i = 0; i < tables.size(); ++i)
        for (Tier tier : {Tier::Hbm, Tier::Dram, Tier::Ssd}) {
          std::vector<TieredTable> other = forced;
          other[i].options = tables[i].options;
          std::erase_if(other[i].options, [&](const TierOption &option) {
            return option.tier != tier;
          });
          if (other[i].options.empty())
            continue;
          double before = best->breakdown.costMs;
          for (const TierBytes &room : rooms)
            std::ranges::any_of(shares(), [&](double share) {
              return tryChoice(other, room, share);
            });
          if (best->breakdown.costMs < before) {
            forced = other;
            improves = true;
          }
        }
    }
  }

  const ShardingProblem &problem;
  const CostModel &model;
  const SearchOptions &options;
  SearchesInTime &search;
  const std::vector<Tier> tiers;
  const std::vector<TieredTable> tables;
  const std::vector<TierBytes> rooms;
  std::optional<SearchResult> best;
  /// Of what was tried, whether there is a plan.
  std::map<Tiers, bool> hasPlan;
  Restarts restarts;   ///< of each search.
  std::string failure; ///< of the last search without a plan.
  int64_t evaluations = 0;
  double seconds = 0;
};

} // namespace

tl::expected<SearchResult, PlanningError>
neuroshard::searchTiers(const ShardingProblem &problem, const CostModel &model,
                        const SearchOptions &options,
                        const TierlessSearch &each) {
  SearchesInTime search(options, each);
  auto result = search(problem, Restarts::Many);
  if (!result && result.error().limit == Limit::DeviceMemory) {
    std::vector<Tier> tiers = usableTiers(problem, options.lowerTiers);
    if (tiers.empty())
      adviseTiers(problem, result.error());
    else
      result = TierSearch(problem, model, options, search, tiers)
                   .run(std::move(result.error()));
  }
  if (!result)
    return result;
  std::vector<std::string> sentences =
      explainTiers(problem, result->plan, result->breakdown);
  result->explanation.insert(result->explanation.begin(), sentences.begin(),
                             sentences.end());
  return result;
}
