//===- SearchOptionTable.cpp - Search options by name ---------------------===//

#include "neuroshard/Planner/SearchOptionTable.h"

#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Planner/PlacementPolicy.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <cassert>

using namespace neuroshard;

namespace {

std::string flagOf(std::string_view key) {
  std::string flag(key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

template <typename T> std::string rangeText(const char *what, T low, T high) {
  std::string text = "expected ";
  text.append(what).append(" in [").append(shortestText(low)).append(", ");
  return text.append(shortestText(high)).append("]");
}

std::vector<SearchOption> makeTable() {
  return {
#define SEARCH_TEXT(ID, KEY, DEFAULT, SCOPE, HELP)                             \
  {                                                                            \
      KEY,                                                                     \
      flagOf(KEY),                                                             \
      OptionKind::Text,                                                        \
      DEFAULT,                                                                 \
      OptionScope::SCOPE,                                                      \
      "",                                                                      \
      HELP,                                                                    \
      0,                                                                       \
      0,                                                                       \
      ""},
#define SEARCH_WHOLE(ID, KEY, TYPE, DEFAULT, LOW, HIGH, SCOPE, UNIT, HELP)     \
  {KEY,                                                                        \
   flagOf(KEY),                                                                \
   OptionKind::Whole,                                                          \
   #DEFAULT,                                                                   \
   OptionScope::SCOPE,                                                         \
   UNIT,                                                                       \
   HELP,                                                                       \
   static_cast<double>(LOW),                                                   \
   static_cast<double>(HIGH),                                                  \
   rangeText<TYPE>("a whole number", LOW, HIGH)},
#define SEARCH_NUMBER(ID, KEY, DEFAULT, LOW, HIGH, SCOPE, UNIT, HELP)          \
  {KEY,                                                                        \
   flagOf(KEY),                                                                \
   OptionKind::Number,                                                         \
   std::isinf(DEFAULT) ? "" : #DEFAULT,                                        \
   OptionScope::SCOPE,                                                         \
   UNIT,                                                                       \
   HELP,                                                                       \
   LOW,                                                                        \
   HIGH,                                                                       \
   rangeText<double>("a number", LOW, HIGH)},
#include "neuroshard/Planner/SearchOptions.def"
  };
}

/// Does a search with these values read the options of a scope?
bool isRead(OptionScope scope, const SearchOptionValues &values) {
  switch (scope) {
  case OptionScope::Always:
    return true;
  case OptionScope::StepObjective:
    return values.objective == toString(ObjectiveKind::Step);
  case OptionScope::Published:
    return values.algorithm == toString(Algorithm::Published);
  case OptionScope::DreamShard:
    return values.algorithm == toString(Algorithm::DreamShard);
  case OptionScope::WarmStart:
    return !values.previous.empty();
  }
  return true;
}

const char *readerOf(OptionScope scope) {
  switch (scope) {
  case OptionScope::Always:
    break;
  case OptionScope::StepObjective:
    return "only the objective 'step' reads it";
  case OptionScope::Published:
    return "only the algorithm 'published' reads it";
  case OptionScope::DreamShard:
    return "only the algorithm 'dreamshard' reads it";
  case OptionScope::WarmStart:
    return "it needs the option 'previous'";
  }
  return "";
}

/// Calls visit(key, scope, value, low, high) for every number.
template <typename Visit>
void forEachNumber(const SearchOptionValues &values, Visit visit) {
#define SEARCH_WHOLE(ID, KEY, TYPE, DEFAULT, LOW, HIGH, SCOPE, ...)            \
  visit(KEY, OptionScope::SCOPE, values.ID, static_cast<TYPE>(LOW),            \
        static_cast<TYPE>(HIGH));
#define SEARCH_NUMBER(ID, KEY, DEFAULT, LOW, HIGH, SCOPE, ...)                 \
  visit(KEY, OptionScope::SCOPE, values.ID, static_cast<double>(LOW),          \
        static_cast<double>(HIGH));
#include "neuroshard/Planner/SearchOptions.def"
}

/// An error for every given option that the search does not read.
Diagnostics checkScopes(const SearchOptionValues &values) {
  const SearchOptionValues defaults;
  Diagnostics errors;
  auto check = [&](const char *key, OptionScope scope, bool isGiven) {
    if (isGiven && !isRead(scope, values))
      errors.push_back({key, readerOf(scope)});
  };
#define SEARCH_TEXT(ID, KEY, DEFAULT, SCOPE, ...)                              \
  check(KEY, OptionScope::SCOPE, values.ID != defaults.ID);
#define SEARCH_WHOLE(ID, KEY, TYPE, DEFAULT, LOW, HIGH, SCOPE, ...)            \
  check(KEY, OptionScope::SCOPE, values.ID != defaults.ID);
#define SEARCH_NUMBER(ID, KEY, DEFAULT, LOW, HIGH, SCOPE, ...)                 \
  check(KEY, OptionScope::SCOPE, values.ID != defaults.ID);
#include "neuroshard/Planner/SearchOptions.def"
  return errors;
}

std::string algorithmNames() {
  std::string names;
  std::span<const Algorithm> all = allAlgorithms();
  for (Algorithm algorithm : all) {
    if (algorithm != all.front())
      names += algorithm == all.back() ? " or " : ", ";
    names += toString(algorithm);
  }
  return names;
}

template <typename Enum>
void readName(const char *key, const std::string &text,
              std::optional<Enum> (*parse)(std::string_view),
              const std::string &names, Enum &out, Diagnostics &errors) {
  if (std::optional<Enum> value = parse(text))
    out = *value;
  else
    errors.push_back({key, "expected " + names + ", got: '" + text + "'"});
}

void readWireTypes(std::string_view text, std::vector<WireType> &out,
                   Diagnostics &errors) {
  if (text == "auto") {
    // Results first, as they go into the loss.
    out = {WireFormat::F32,
           {WireFormat::F32, WireFormat::BF16},
           {WireFormat::BF16, WireFormat::F32},
           WireFormat::BF16};
    return;
  }
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string name(text.substr(begin, end - begin));
    std::optional<WireType> type = parseWireType(name);
    if (!type || std::ranges::count(out, *type)) {
      errors.push_back({std::string(kWireTypes),
                        "expected auto, or types with commas between them, "
                        "each once: " +
                            choicesOf<WireType>() + ", got: '" +
                            std::string(text) + "'"});
      return;
    }
    out.push_back(*type);
    begin = end + 1;
  }
}

std::string tiersText(std::span<const Tier> lower) {
  std::string text(toString(Tier::Hbm));
  for (Tier tier : lower)
    text.append(",").append(toString(tier));
  return text;
}

void readTiers(const std::string &text, std::vector<Tier> &lower,
               Diagnostics &errors) {
  for (const std::vector<Tier> &each : {std::vector<Tier>(),
                                        {Tier::Dram},
                                        {Tier::Ssd},
                                        {Tier::Dram, Tier::Ssd}})
    if (text == tiersText(each)) {
      lower = each;
      return;
    }
  errors.push_back({"tiers", "expected hbm, hbm,dram, hbm,ssd or hbm,dram,ssd, "
                             "got: '" +
                                 text + "'"});
}

std::string wireTypesText(std::span<const WireType> types) {
  std::string text;
  for (WireType type : types)
    text.append(text.empty() ? "" : ",").append(toString(type));
  return text;
}

} // namespace

std::span<const SearchOption> neuroshard::searchOptionTable() {
  static const std::vector<SearchOption> table = makeTable();
  return table;
}

const SearchOption &neuroshard::searchOption(std::string_view key) {
  std::span<const SearchOption> table = searchOptionTable();
  auto found = std::ranges::find(table, key, &SearchOption::key);
  assert(found != table.end() && "not a key of the table");
  return *found;
}

std::string neuroshard::helpOf(const SearchOption &option) {
  std::string text(option.help);
  std::string more(option.unit);
  auto add = [&](const std::string &part) {
    more.append(more.empty() || part.empty() ? "" : ", ").append(part);
  };
  if (option.kind != OptionKind::Text)
    add(option.range.substr(option.range.find('[')));
  if (!option.defaultText.empty())
    add("default: " + std::string(option.defaultText));
  return more.empty() ? text : text + " (" + more + ")";
}

Diagnostics neuroshard::checkRanges(const SearchOptionValues &values) {
  Diagnostics errors;
  forEachNumber(values, [&](const char *key, OptionScope, auto value, auto low,
                            auto high) {
    bool isNone = key == std::string_view("deadline_s") &&
                  value == static_cast<decltype(value)>(HUGE_VAL);
    if ((value >= low && value <= high) || isNone)
      return;
    errors.push_back(
        {key, searchOption(key).range + ", got: " + shortestText(value)});
  });
  if (errors.empty() && values.gridEnd < values.gridBegin)
    errors.push_back(
        {"grid_end", "expected at least grid_begin, " +
                         shortestText(values.gridBegin) +
                         ", got: " + shortestText(values.gridEnd)});
  return errors;
}

Expected<SearchOptions>
neuroshard::makeSearchOptions(const SearchOptionValues &values,
                              const ShardingPlan *previous) {
  SearchOptions options;
  Diagnostics errors;
  readName("algorithm", values.algorithm, parseAlgorithm, algorithmNames(),
           options.algorithm, errors);
  readName("objective", values.objective, parseObjectiveKind,
           "step or published", options.objective.kind, errors);
  readWireTypes(values.wireTypes, options.wireTypes, errors);
  readTiers(values.tiers, options.lowerTiers, errors);
  if (errors.empty())
    errors = checkScopes(values);
  if (errors.empty())
    errors = checkRanges(values);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  options.objective.denseBottomMs = values.denseBottomMs;
  options.objective.denseRestMs = values.denseRestMs;
  options.objective.pipelineDepth = values.pipelineDepth;
  options.published = {values.candidates, values.beamWidth, values.depth,
                       values.gridPoints, values.gridBegin, values.gridEnd};
  options.policySamples = values.policySamples;
  options.seed = values.seed;
  options.threads = values.threads;
  if (std::isfinite(values.deadlineS))
    options.deadlineSeconds = values.deadlineS;
  options.evaluationBudget = values.evaluationBudget;
  if (previous)
    options.warmStart =
        WarmStart{*previous, values.horizonSteps, values.tolerance};
  return options;
}

SearchOptionValues neuroshard::valuesOf(const SearchOptions &options) {
  SearchOptionValues values;
  values.algorithm = toString(options.algorithm);
  values.objective = toString(options.objective.kind);
  values.wireTypes = wireTypesText(options.wireTypes);
  values.tiers = tiersText(options.lowerTiers);
  values.denseBottomMs = options.objective.denseBottomMs;
  values.denseRestMs = options.objective.denseRestMs;
  values.pipelineDepth = options.objective.pipelineDepth;
  values.candidates = options.published.candidates;
  values.beamWidth = options.published.beamWidth;
  values.depth = options.published.depth;
  values.gridPoints = options.published.gridPoints;
  values.gridBegin = options.published.gridBegin;
  values.gridEnd = options.published.gridEnd;
  values.policySamples = options.policySamples;
  values.seed = options.seed;
  values.threads = options.threads;
  if (options.deadlineSeconds)
    values.deadlineS = *options.deadlineSeconds;
  values.evaluationBudget = options.evaluationBudget;
  if (options.warmStart) {
    values.previous = "a plan";
    values.horizonSteps = options.warmStart->horizonSteps;
    values.tolerance = options.warmStart->tolerance;
  }
  return values;
}

std::vector<std::pair<std::string, std::string>>
neuroshard::settingsOf(const SearchOptions &options) {
  const SearchOptionValues values = valuesOf(options);
  std::vector<std::pair<std::string, std::string>> settings;
  if (!options.wireTypes.empty())
    settings.emplace_back(kWireTypes, values.wireTypes);
  if (!options.lowerTiers.empty())
    settings.emplace_back("tiers", values.tiers);
  if (options.algorithm == Algorithm::DreamShard && options.policy)
    settings.emplace_back("policy", options.policy->name());
  forEachNumber(values, [&](std::string_view key, OptionScope scope, auto value,
                            auto, auto) {
    bool isElsewhere = key == "seed" || key == "threads";
    bool isNone = key == "deadline_s" && !options.deadlineSeconds;
    if (!isElsewhere && !isNone && isRead(scope, values))
      settings.emplace_back(key, shortestText(value));
  });
  return settings;
}
