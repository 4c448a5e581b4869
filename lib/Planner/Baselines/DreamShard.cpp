//===- DreamShard.cpp - Placement by a trained policy ---------------------===//
///
/// \file
/// DreamShard (Zha et al., NeurIPS 2022): one pass in which a policy chooses
/// the device of each unit, without search. More episodes may be sampled from
/// the policy, of which the cheapest is kept.
//===----------------------------------------------------------------------===//

#include "Baselines.h"
#include "neuroshard/Planner/PlacementMdp.h"

using namespace neuroshard;

namespace {

/// Sampled episodes after the greedy one found no room for a unit.
constexpr int kRescueEpisodes = 64;

/// Keeps the cheapest complete episode.
class BestEpisode {
public:
  explicit BestEpisode(PlacementMdp &mdp) : mdp(mdp) {}

  /// Called after each episode.
  void offer(bool complete) {
    if (!complete) {
      if (std::optional<size_t> piece = mdp.next())
        blocking = mdp.state().units()[*piece];
      return;
    }
    double cost = mdp.costMs();
    if (best && cost >= costMs)
      return;
    best.emplace(mdp.state());
    costMs = cost;
  }

  std::optional<SearchState> best;
  double costMs = 0;
  UnitPtr blocking;

private:
  PlacementMdp &mdp;
};

} // namespace

SearchOutcome neuroshard::searchDreamShard(const SearchContext &context,
                                           const std::vector<UnitPtr> &units) {
  PlacementMdp mdp(context, units);
  std::unique_ptr<PlacementPlayer> player =
      context.options.policy->play(mdp.task());
  SearchOutcome outcome;
  BestEpisode episodes(mdp);
  episodes.offer(playEpisode(mdp, *player));
  outcome.evaluations = 1;
  if (episodes.best)
    outcome.tried.push_back("the policy's choices: " +
                            formatMs(episodes.costMs));
  int samples = context.options.policySamples;
  bool rescue = !episodes.best;
  for (int i = 0; i < std::max(samples, rescue ? kRescueEpisodes : 0); ++i) {
    if (context.deadlinePassed() || (i >= samples && episodes.best))
      break;
    uint64_t seed = context.options.seed * 1000003 + static_cast<uint64_t>(i);
    episodes.offer(playEpisode(mdp, *player, seed));
    ++outcome.evaluations;
  }
  if (outcome.evaluations > 1 && episodes.best)
    outcome.tried.push_back("best of " +
                            std::to_string(outcome.evaluations - 1) +
                            " sampled episodes: " + formatMs(episodes.costMs));
  outcome.stopReason = std::to_string(outcome.evaluations) +
                       " episodes of the policy " +
                       context.options.policy->name();
  outcome.state = std::move(episodes.best);
  outcome.blocking = episodes.blocking;
  return outcome;
}
