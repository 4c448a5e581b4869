//===- PlacementMdp.cpp - Placement as a Markov decision process ----------===//

#include "neuroshard/Planner/PlacementMdp.h"

#include "Explain/Infeasibility.h"
#include "InitialUnits/InitialUnits.h"
#include "Placement/Greedy.h"
#include "Units/SearchState.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace neuroshard;

PlacementPlayer::~PlacementPlayer() = default;
PlacementPolicy::~PlacementPolicy() = default;

struct PlacementMdp::Game {
  Game(const SearchContext &context, const std::vector<UnitPtr> &units)
      : start(context, units), state(start), order(orderByCost(context, units)),
        devices(static_cast<size_t>(context.deviceCount)) {
    double meanMemory = 0;
    for (int device = 0; device < context.deviceCount; ++device)
      meanMemory +=
          static_cast<double>(context.memoryOf(device)) / context.deviceCount;
    for (const UnitPtr &unit : units) {
      PlacementPiece &piece = pieces.emplace_back();
      for (const ShardWork &work : unit->works)
        piece.works.push_back(&work);
      piece.aloneMs = unit->aloneMs();
      piece.exchangeBytes = unit->load.forwardBytes + unit->load.backwardBytes;
      piece.memoryShare =
          static_cast<double>(unit->peakBytes()) / std::max(1.0, meanMemory);
    }
    for (size_t i = 0; i < units.size(); ++i)
      collectGiven(i);
  }

  void collectGiven(size_t piece) {
    int device = start.deviceOf(piece);
    if (device >= 0)
      given.emplace_back(piece, device);
    for (int each = 0;
         device == Unit::kEverywhere && each < start.context().deviceCount;
         ++each)
      given.emplace_back(piece, each);
  }

  void look(const Unit &unit);

  // Set by make(), where the game owns its context and the context's options.
  std::unique_ptr<SearchOptions> ownOptions;
  std::unique_ptr<SearchContext> ownContext;

  const SearchState start;
  SearchState state;
  std::vector<PlacementPiece> pieces;
  std::vector<std::pair<size_t, int>> given;
  std::vector<size_t> order;
  size_t steps = 0;
  std::vector<PlacementDevice> devices;
};

void PlacementMdp::Game::look(const Unit &unit) {
  CostBreakdown now = state.breakdown();
  for (int index = 0; index < state.context().deviceCount; ++index) {
    const DeviceCost &cost = now.devices[static_cast<size_t>(index)];
    PlacementDevice &device = devices[static_cast<size_t>(index)];
    double capacity =
        std::max(1.0, static_cast<double>(state.context().memoryOf(index)));
    double used = static_cast<double>(state.usedBytes(index));
    device.admits = state.fits(index, unit);
    device.compute = cost.compute;
    device.computeAfter = state.computeWith(index, unit);
    device.communicationMs = cost.inputMs + cost.forwardCommunicationMs +
                             cost.backwardCommunicationMs;
    device.exchangeBytes = cost.forwardBytes + cost.backwardBytes;
    device.memoryShare = used / capacity;
    device.memoryShareAfter =
        (used + static_cast<double>(unit.peakBytes())) / capacity;
  }
}

PlacementMdp::PlacementMdp(std::unique_ptr<Game> game)
    : game(std::move(game)) {}

PlacementMdp::PlacementMdp(const SearchContext &context,
                           const std::vector<UnitPtr> &units)
    : game(std::make_unique<Game>(context, units)) {}

PlacementMdp::PlacementMdp(PlacementMdp &&) = default;
PlacementMdp::~PlacementMdp() = default;

tl::expected<PlacementMdp, PlanningError>
PlacementMdp::make(const ShardingProblem &problem, const CostModel &model,
                   const ObjectiveOptions &objective) {
  Diagnostics errors = check(problem);
  if (errors.empty())
    errors = checkObjective(model, objective);
  if (!errors.empty())
    return tl::unexpected(diagnoseBadInput(errors));
  auto options = std::make_unique<SearchOptions>();
  options->objective = objective;
  options->threads = 1;
  auto context = std::make_unique<SearchContext>(problem, model, *options);
  tl::expected<std::vector<UnitPtr>, PlanningError> units =
      initialUnits(*context);
  if (!units)
    return tl::unexpected(units.error());
  auto game = std::make_unique<Game>(*context, *units);
  game->ownOptions = std::move(options);
  game->ownContext = std::move(context);
  return PlacementMdp(std::move(game));
}

PlacementTask PlacementMdp::task() const {
  const SearchContext &context = game->start.context();
  return {game->pieces, context.deviceCount, context.options.objective.kind};
}

std::span<const std::pair<size_t, int>> PlacementMdp::given() const {
  return game->given;
}

std::span<const size_t> PlacementMdp::order() const { return game->order; }

void PlacementMdp::reset() {
  game->state = game->start;
  game->steps = 0;
}

std::optional<size_t> PlacementMdp::next() const {
  if (game->steps == game->order.size())
    return std::nullopt;
  return game->order[game->steps];
}

std::span<const PlacementDevice> PlacementMdp::devices() {
  game->look(*game->state.units()[*next()]);
  return game->devices;
}

void PlacementMdp::place(int device) {
  game->state.place(*next(), device);
  ++game->steps;
}

size_t PlacementMdp::steps() const { return game->steps; }
double PlacementMdp::costMs() const { return game->state.costMs(); }
bool PlacementMdp::withinMemory() const { return game->state.withinMemory(); }
const SearchState &PlacementMdp::state() const { return game->state; }

//===----------------------------------------------------------------------===//
// Episodes
//===----------------------------------------------------------------------===//

namespace {

/// The admitted device with the highest score, the first such one; -1 if none.
int bestDevice(std::span<const PlacementDevice> devices,
               std::span<const float> scores) {
  int best = -1;
  for (size_t d = 0; d < devices.size(); ++d)
    if (devices[d].admits &&
        (best < 0 || scores[d] > scores[static_cast<size_t>(best)]))
      best = static_cast<int>(d);
  return best;
}

/// A device drawn by the softmax of the scores. Without a std distribution,
/// because these differ between standard libraries.
int drawDevice(std::span<const PlacementDevice> devices,
               std::span<const float> scores, std::mt19937_64 &random) {
  int best = bestDevice(devices, scores);
  if (best < 0)
    return -1;
  auto weight = [&](size_t d) {
    double below = static_cast<double>(scores[d]) -
                   static_cast<double>(scores[static_cast<size_t>(best)]);
    return devices[d].admits ? std::exp(below) : 0.0;
  };
  double total = 0;
  for (size_t d = 0; d < devices.size(); ++d)
    total += weight(d);
  double left = total * (static_cast<double>(random() >> 11) * 0x1p-53);
  for (size_t d = 0; d < devices.size(); ++d) {
    left -= weight(d);
    if (devices[d].admits && left < 0)
      return static_cast<int>(d);
  }
  return best;
}

} // namespace

bool neuroshard::playEpisode(PlacementMdp &mdp, PlacementPlayer &player,
                             std::optional<uint64_t> seed,
                             const PlacementObserver &observe) {
  std::mt19937_64 random(seed.value_or(0));
  mdp.reset();
  player.reset();
  for (auto [piece, device] : mdp.given())
    player.placed(piece, device);
  std::vector<float> scores(static_cast<size_t>(mdp.task().deviceCount));
  while (std::optional<size_t> piece = mdp.next()) {
    std::span<const PlacementDevice> devices = mdp.devices();
    player.scores(*piece, devices, scores);
    int device = seed ? drawDevice(devices, scores, random)
                      : bestDevice(devices, scores);
    if (device < 0)
      return false;
    if (observe)
      observe(*piece, devices, device);
    mdp.place(device);
    player.placed(*piece, device);
  }
  return mdp.withinMemory();
}
