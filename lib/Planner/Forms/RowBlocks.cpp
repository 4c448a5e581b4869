//===- RowBlocks.cpp - Tables cut row-wise to save time -------------------===//

#include "RowBlocks.h"

#include "InitialCuts.h"
#include "Units/SearchThreads.h"

#include <algorithm>
#include <limits>

using namespace neuroshard;

namespace {

/// Row blocks must lower the cost of the placement by this share.
constexpr double kLeastRowBlockGain = 2e-4;
/// Passes over the tables, at most; another pass follows while one changes
/// something.
constexpr int kPasses = 3;
/// The costliest tables are tried: at least kFewTables, and more while tables x
/// units x devices stay below kTrialWork.
constexpr size_t kFewTables = 4;
constexpr double kTrialWork = 2e6;
/// Number of choices returned: the cheapest ones.
constexpr size_t kChoices = 4;

class RowBlockChooser {
public:
  RowBlockChooser(const SearchContext &context,
                  const std::vector<UnitPtr> &units, int64_t &evaluations)
      : context(context), units(units), evaluations(evaluations),
        forms(units.size(), 0) {}

  std::vector<std::vector<UnitPtr>> run();

private:
  /// A unit, and the forms it may have instead: one for each group.
  struct Candidate {
    size_t unit;
    std::vector<std::vector<UnitPtr>> blocks;
  };
  /// A change of a candidate's form.
  struct Trial {
    const Candidate *candidate;
    size_t form;
    double costMs = kInfiniteMs;
  };

  void findCandidates();
  std::vector<Trial> allTrials() const;
  std::vector<UnitPtr> build(const std::vector<size_t> &chosen) const;
  double costMs(const std::vector<size_t> &chosen);
  double costMs(const Trial &trial);
  bool improve(double &cost);

  const SearchContext &context;
  const std::vector<UnitPtr> &units;
  int64_t &evaluations;
  const std::vector<CutRule> rules = cutRules(context);
  std::vector<Candidate> candidates;
  /// By unit: 0 for the unit itself, else 1 + the index of its blocks.
  std::vector<size_t> forms;
  /// The values of `forms` that were each the best so far.
  std::vector<std::vector<size_t>> choices;
};

void RowBlockChooser::findCandidates() {
  for (size_t i = 0; i < units.size(); ++i) {
    int table = units[i]->tables.front();
    if (!isWholeTable(context, *units[i]) || context.rulesOf(table).fixed)
      continue;
    Candidate candidate{i, {}};
    for (const std::vector<int> &group : rowBlockGroups(context, table))
      candidate.blocks.push_back(rowBlocks(context, table, group));
    if (!candidate.blocks.empty())
      candidates.push_back(std::move(candidate));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate &a, const Candidate &b) {
                     return units[a.unit]->aloneMs() > units[b.unit]->aloneMs();
                   });
  double work = static_cast<double>(units.size()) * context.deviceCount;
  size_t most = std::max(kFewTables, static_cast<size_t>(kTrialWork / work));
  if (candidates.size() > most)
    candidates.resize(most);
}

std::vector<UnitPtr>
RowBlockChooser::build(const std::vector<size_t> &chosen) const {
  std::vector<UnitPtr> result;
  for (size_t i = 0; i < units.size(); ++i)
    if (chosen[i] == 0)
      result.push_back(units[i]);
  for (const Candidate &candidate : candidates)
    if (size_t form = chosen[candidate.unit])
      result.insert(result.end(), candidate.blocks[form - 1].begin(),
                    candidate.blocks[form - 1].end());
  return result;
}

/// The cost of the best greedy placement; infinite if there is none.
double RowBlockChooser::costMs(const std::vector<size_t> &chosen) {
  std::vector<UnitPtr> pieces = build(chosen);
  double best = kInfiniteMs;
  for (const CutRule &rule : rules) {
    GreedyJob job;
    job.units = cutBy(context, rule, pieces);
    job.order = orderByCost(context, job.units);
    GreedyJob *one[] = {&job};
    GreedyPlacer(context, {kNoCap}).run(one);
    best = std::min(best, job.costMs);
  }
  return best;
}

double RowBlockChooser::costMs(const Trial &trial) {
  std::vector<size_t> chosen = forms;
  chosen[trial.candidate->unit] = trial.form;
  return costMs(chosen);
}

std::vector<RowBlockChooser::Trial> RowBlockChooser::allTrials() const {
  std::vector<Trial> trials;
  for (const Candidate &candidate : candidates)
    for (size_t form = 0; form <= candidate.blocks.size(); ++form)
      if (form != forms[candidate.unit])
        trials.push_back({&candidate, form});
  return trials;
}

/// Makes the changes that lower the cost, best first, each measured again
/// before.
bool RowBlockChooser::improve(double &cost) {
  std::vector<Trial> trials = allTrials();
  context.pool().forEach(trials.size(), [&](size_t i) {
    if (!context.deadlinePassed())
      trials[i].costMs = costMs(trials[i]);
  });
  evaluations += static_cast<int64_t>(trials.size());
  std::stable_sort(
      trials.begin(), trials.end(),
      [](const Trial &a, const Trial &b) { return a.costMs < b.costMs; });
  bool improved = false;
  for (const Trial &trial : trials) {
    if (!(trial.costMs < cost * (1 - kLeastRowBlockGain)) ||
        context.deadlinePassed())
      break;
    double now = improved ? costMs(trial) : trial.costMs;
    evaluations += improved;
    if (!(now < cost * (1 - kLeastRowBlockGain)))
      continue;
    forms[trial.candidate->unit] = trial.form;
    choices.push_back(forms);
    cost = now;
    improved = true;
  }
  return improved;
}

std::vector<std::vector<UnitPtr>> RowBlockChooser::run() {
  findCandidates();
  if (candidates.empty())
    return {};
  double cost = costMs(forms);
  ++evaluations;
  for (int pass = 0; pass < kPasses && improve(cost); ++pass) {
  }
  std::vector<std::vector<UnitPtr>> result;
  size_t first = choices.size() - std::min(choices.size(), kChoices);
  for (size_t i = first; i < choices.size(); ++i)
    result.push_back(build(choices[i]));
  return result;
}

} // namespace

std::vector<std::vector<UnitPtr>>
neuroshard::rowBlockChoices(const SearchContext &context,
                            const std::vector<UnitPtr> &units,
                            int64_t &evaluations) {
  if (context.problem.target == Target::Native)
    return {};
  return RowBlockChooser(context, units, evaluations).run();
}
