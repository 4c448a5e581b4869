//===- SearchOptionsJson.cpp - Search options from JSON -------------------===//

#include "JsonReader.h"
#include "PlanJson.h"
#include "neuroshard/Planner/SearchOptionTable.h"
#include "neuroshard/Serialization/SearchJson.h"

using namespace neuroshard;
using namespace neuroshard::json;

/// The field, or null if it is missing or null in the document.
static const Json *findUnlessNull(Object &object, std::string_view key) {
  const Json *value = object.find(key);
  return value && value->is_null() ? nullptr : value;
}

static void readValues(Object &object, SearchOptionValues &values) {
#define SEARCH_TEXT(ID, KEY, ...)                                              \
  if (std::string_view(KEY) != "previous")                                     \
    object.optional(KEY, values.ID);
#define SEARCH_WHOLE(ID, KEY, ...) object.optional(KEY, values.ID);
#define SEARCH_NUMBER(ID, KEY, ...)                                            \
  if (std::string_view(KEY) != "deadline_s" || findUnlessNull(object, KEY))    \
    object.optional(KEY, values.ID);
#include "neuroshard/Planner/SearchOptions.def"
}

static void readText(Object &object, std::string_view key, std::string &out) {
  if (object.optional(key, out) && out.empty())
    object.reader.error(Path(object.path, key),
                        "expected a text that is not empty");
}

static std::optional<ShardingPlan> readPrevious(Object &object) {
  const Json *previous = findUnlessNull(object, "previous");
  if (!previous)
    return std::nullopt;
  Expected<ShardingPlan> plan = json::planOf(*previous);
  if (plan)
    return *std::move(plan);
  for (const Diagnostic &error : plan.error())
    object.reader.error(Path(object.path, "previous"), error.str());
  return std::nullopt;
}

Expected<SearchRequest> neuroshard::parseSearchRequest(std::string_view text) {
  Expected<Json> root = json::parse(text.empty() ? "{}" : text);
  if (!root)
    return tl::unexpected(root.error());
  SearchRequest request;
  SearchOptionValues values;
  std::optional<ShardingPlan> previous;
  Diagnostics unread;
  {
    Reader reader(unread);
    Path path;
    Object object(reader, *root, path);
    readValues(object, values);
    previous = readPrevious(object);
    readText(object, "target", request.target);
    readText(object, "topology", request.topology);
  }
  if (previous)
    values.previous = "the plan given";
  Expected<SearchOptions> options =
      makeSearchOptions(values, previous ? &*previous : nullptr);
  Diagnostics errors = options ? Diagnostics() : options.error();
  errors.insert(errors.end(), unread.begin(), unread.end());
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  request.options = *std::move(options);
  request.costModel = std::move(values.costModel);
  request.policy = std::move(values.policy);
  return request;
}
