//===- WorkloadReader.cpp - Reads a workload from JSON --------------------===//

#include "JsonReader.h"
#include "ShardJson.h"
#include "TopologyJson.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/ClosestName.h"

#include <algorithm>
#include <unordered_map>

using namespace neuroshard;
using namespace neuroshard::json;

namespace {

/// Fields that rules on other fields of their object read, and "schema", which
/// decides what all of them mean.
constexpr std::string_view kDeciding[] = {
    "dynamic_ids", "kind",   "mean_pooling", "mode",    "presence",
    "reuse",       "schema", "type",         "weighted"};

/// Whether a place is another one or inside it.
bool isWithin(std::string_view place, std::string_view outer) {
  return outer.empty() ||
         (place.starts_with(outer) &&
          (place.size() == outer.size() || place[outer.size()] == '.' ||
           place[outer.size()] == '['));
}

/// Whether an error at a place may only stand there because fields could not
/// be read.
bool dependsOn(std::string_view place, const std::vector<std::string> &unread) {
  return std::ranges::any_of(unread, [&](std::string_view field) {
    size_t dot = field.rfind('.');
    bool top = dot == std::string_view::npos;
    std::string_view key = top ? field : field.substr(dot + 1);
    std::string_view object = top ? "" : field.substr(0, dot);
    return isWithin(place, field) || isWithin(field, place) ||
           (std::ranges::find(kDeciding, key) != std::end(kDeciding) &&
            isWithin(place, object));
  });
}

class WorkloadReader {
public:
  explicit WorkloadReader(Diagnostics &errors) : reader(errors) {}

  ShardingProblem read(const Json &root);
  /// All errors: those of reading, and those of the problem. Where more could
  /// not be read than names of tables and features in some places, those of
  /// its topology and constraints are left out.
  Diagnostics check(const ShardingProblem &problem) const;

private:
  Table readTable(const Json &value, const Path &path);
  Optimizer readOptimizer(const Json &value, const Path &path);
  AccessStatistics readAccess(const Json &value, const Path &path);
  Feature readFeature(const Json &value, const Path &path);
  Snapshot readSnapshot(const Json &value, const Path &path,
                        const ShardingProblem &problem);
  Batch readBatch(const Json &value, const Path &path);
  void readConstraints(const Json &value, const Path &path, Constraints &out);
  void readTableConstraint(const Json &value, const Path &path,
                           Constraints &out);
  int readTableName(const Json &value, const Path &path);
  using NumberOfName = std::unordered_map<std::string, int>;
  int unknownName(const Path &path, const std::string &what,
                  const std::string &name, const NumberOfName &known);
  std::vector<int> readDevices(Object &object);
  std::vector<std::vector<int>> readTableSets(const Json &value,
                                              const Path &path);

  bool hasTopology = false;
  /// Whether there is a list of tables, which names can then be looked up in.
  bool hasTables = false;
  Reader reader;
  /// Where a name stands that is none of a table or feature.
  std::vector<std::string> unknownNames;
  NumberOfName tableOfName;
  NumberOfName featureOfName;
};

Optimizer WorkloadReader::readOptimizer(const Json &value, const Path &path) {
  Optimizer optimizer;
  auto setKind = [&](const std::string &name, const Path &where) {
    if (auto kind = parseOptimizerKind(name))
      optimizer.kind = *kind;
    else
      reader.error(where, "expected " + choicesOf<OptimizerKind>() +
                              ", got: '" + name + "'");
  };
  std::string name;
  if (value.is_string()) {
    reader.read(value, path, name);
    setKind(name, path);
    return optimizer;
  }
  Object object(reader, value, path);
  if (object.required("kind", name))
    setKind(name, Path(path, "kind"));
  for (const NumberSetting &setting : kNumberSettings)
    object.optional(setting.name, optimizer.*setting.value);
  object.name("weight_decay_mode", optimizer.weightDecayMode,
              parseWeightDecayMode);
  object.optional("stochastic_rounding", optimizer.stochasticRounding);
  object.optional("catch_up", optimizer.catchUp);
  return optimizer;
}

AccessStatistics WorkloadReader::readAccess(const Json &value,
                                            const Path &path) {
  AccessStatistics access;
  Object object(reader, value, path);
  object.required("batch", access.batch);
  if (const Json *reuse = object.findRequired("reuse")) {
    Path reusePath(path, "reuse");
    if (reuse->is_array() && reuse->size() != kReuseBins)
      reader.error(reusePath,
                   "expected " + std::to_string(kReuseBins) +
                       " shares, got: " + std::to_string(reuse->size()));
    size_t bin = 0;
    reader.list(*reuse, reusePath, [&](const Json &item, const Path &where) {
      double share = 0;
      if (reader.read(item, where, share) && bin < access.reuse.size())
        access.reuse[bin] = share;
      ++bin;
    });
  }
  if (const Json *mass = object.find("row_mass"))
    reader.list(*mass, Path(path, "row_mass"),
                [&](const Json &item, const Path &where) {
                  RowMassQuantile point;
                  Object entry(reader, item, where);
                  entry.required("row_share", point.rowShare);
                  entry.required("lookup_share", point.lookupShare);
                  access.rowMass.push_back(point);
                });
  object.optional("rows_by_use", access.rowsByUse);
  return access;
}

Table WorkloadReader::readTable(const Json &value, const Path &path) {
  Table table;
  Object object(reader, value, path);
  object.required("name", table.name);
  object.required("rows", table.rows);
  object.required("dim", table.dim);
  object.name("type", table.elementType, parseElementType);
  if (const Json *optimizer = object.find("optimizer"))
    table.optimizer = readOptimizer(*optimizer, Path(path, "optimizer"));
  object.optional("hashed", table.hashed);
  object.optional("dynamic_ids", table.dynamicIds);
  object.optional("id_candidates", table.idCandidates);
  if (const Json *access = object.find("access"))
    table.access = readAccess(*access, Path(path, "access"));
  return table;
}

/// An index that checks refuse. known: the names that there are, of which the
/// first errors say the closest.
int WorkloadReader::unknownName(const Path &path, const std::string &what,
                                const std::string &name,
                                const NumberOfName &known) {
  constexpr size_t kMostSuggestions = 10, kMostNames = 10000;
  std::string suggestion;
  if (unknownNames.size() < kMostSuggestions && known.size() <= kMostNames) {
    std::vector<std::string> names;
    for (const auto &[one, number] : known)
      names.push_back(one);
    std::ranges::sort(names); // the first of several is suggested
    suggestion = didYouMean(name, names);
  }
  reader.error(path, "unknown " + what + " '" + name + "'" + suggestion);
  unknownNames.push_back(path.str());
  return -1;
}

int WorkloadReader::readTableName(const Json &value, const Path &path) {
  std::string name;
  if (!reader.read(value, path, name))
    return 0;
  auto found = tableOfName.find(name);
  if (found != tableOfName.end())
    return found->second;
  return !hasTables ? 0 : unknownName(path, "table", name, tableOfName);
}

Feature WorkloadReader::readFeature(const Json &value, const Path &path) {
  Feature feature;
  Object object(reader, value, path);
  object.required("name", feature.name);
  if (const Json *table = object.findRequired("table"))
    feature.table = readTableName(*table, Path(path, "table"));
  object.name("pooling", feature.pooling, parsePooling);
  object.optional("mean_pooling", feature.meanPooling);
  object.optional("p99_pooling", feature.p99Pooling);
  object.optional("presence", feature.presence);
  object.optional("batch", feature.batch);
  object.optional("weighted", feature.weighted);
  object.optional("needs_weight_gradient", feature.needsWeightGradient);
  return feature;
}

/// What an entry does not say is as in the workload's own list.
Snapshot WorkloadReader::readSnapshot(const Json &value, const Path &path,
                                      const ShardingProblem &problem) {
  Snapshot snapshot;
  Object object(reader, value, path);
  object.required("name", snapshot.name);
  object.optional("weight", snapshot.weight);
  auto readFeatureEntry = [&](const Json &item, const Path &where) {
    Object entry(reader, item, where);
    std::string name;
    std::optional<double> mean, p99, presence;
    entry.optional("mean_pooling", mean);
    entry.optional("p99_pooling", p99);
    entry.optional("presence", presence);
    if (!entry.required("feature", name))
      return;
    auto found = featureOfName.find(name);
    if (found == featureOfName.end()) {
      unknownName(Path(where, "feature"), "feature", name, featureOfName);
      return;
    }
    const Feature &own = problem.features[static_cast<size_t>(found->second)];
    snapshot.features.push_back({found->second, mean.value_or(own.meanPooling),
                                 p99.value_or(own.p99Pooling),
                                 presence.value_or(own.presence)});
  };
  auto readTableEntry = [&](const Json &item, const Path &where) {
    TableStatistics statistics;
    Object entry(reader, item, where);
    if (const Json *table = entry.findRequired("table"))
      statistics.table = readTableName(*table, Path(where, "table"));
    if (const Json *access = entry.findRequired("access"))
      statistics.access = readAccess(*access, Path(where, "access"));
    snapshot.tables.push_back(std::move(statistics));
  };
  if (const Json *features = object.find("features"))
    reader.list(*features, Path(path, "features"), readFeatureEntry);
  if (const Json *tables = object.find("tables"))
    reader.list(*tables, Path(path, "tables"), readTableEntry);
  return snapshot;
}

Batch WorkloadReader::readBatch(const Json &value, const Path &path) {
  Batch batch;
  Object object(reader, value, path);
  object.required("global_size", batch.globalSize);
  object.name("id_type", batch.idType, parseIdType);
  object.name("output_type", batch.outputType, parseElementType);
  object.name("wire_type", batch.wireType, parseWireType);
  object.optional("input_copies", batch.inputCopies);
  object.optional("backwards", batch.backwards);
  return batch;
}

std::vector<int> WorkloadReader::readDevices(Object &object) {
  std::vector<int> devices;
  if (const Json *list = object.findRequired("devices"))
    reader.list(*list, Path(object.path, "devices"),
                [&](const Json &item, const Path &where) {
                  reader.read(item, where, devices.emplace_back());
                });
  return devices;
}

std::vector<std::vector<int>> WorkloadReader::readTableSets(const Json &value,
                                                            const Path &path) {
  std::vector<std::vector<int>> sets;
  reader.list(value, path, [&](const Json &item, const Path &where) {
    std::vector<int> &set = sets.emplace_back();
    reader.list(item, where, [&](const Json &name, const Path &place) {
      set.push_back(readTableName(name, place));
    });
  });
  return sets;
}

void WorkloadReader::readTableConstraint(const Json &value, const Path &path,
                                         Constraints &out) {
  TableConstraint constraint;
  Object object(reader, value, path);
  if (const Json *table = object.findRequired("table"))
    constraint.table = readTableName(*table, Path(path, "table"));
  if (const Json *kinds = object.find("allowed_kinds"))
    reader.list(*kinds, Path(path, "allowed_kinds"),
                [&](const Json &item, const Path &where) {
                  std::string name;
                  if (!reader.read(item, where, name))
                    return;
                  if (auto kind = parseShardingKind(name))
                    constraint.allowedKinds.push_back(*kind);
                  else
                    reader.error(where,
                                 "expected table_wise, column_wise, row_wise, "
                                 "table_row_wise, row_column or replicated, "
                                 "got: '" +
                                     name + "'");
                });
  object.optional("min_width", constraint.minWidth);
  object.optional("cache_share", constraint.cacheShare);
  object.optional("sync_every", constraint.syncEvery);
  if (const Json *tier = object.find("tier")) {
    std::string name;
    if (reader.read(*tier, Path(path, "tier"), name) &&
        !(constraint.tier = parseTier(name)))
      reader.error(Path(path, "tier"),
                   "expected dram or ssd, got: '" + name + "'");
  }
  out.tables.push_back(std::move(constraint));
}

void WorkloadReader::readConstraints(const Json &value, const Path &path,
                                     Constraints &out) {
  Object object(reader, value, path);
  auto readPlaces = [&](const char *key, auto &places) {
    const Json *list = object.find(key);
    if (!list)
      return;
    reader.list(*list, Path(path, key),
                [&](const Json &item, const Path &where) {
                  Object entry(reader, item, where);
                  auto &place = places.emplace_back();
                  if (const Json *table = entry.findRequired("table"))
                    place.table = readTableName(*table, Path(where, "table"));
                  place.devices = readDevices(entry);
                });
  };
  readPlaces("pins", out.pins);
  readPlaces("forbids", out.forbids);
  if (const Json *sets = object.find("co_locate"))
    out.coLocate = readTableSets(*sets, Path(path, "co_locate"));
  if (const Json *sets = object.find("separate"))
    out.separate = readTableSets(*sets, Path(path, "separate"));
  if (const Json *tables = object.find("tables"))
    reader.list(*tables, Path(path, "tables"),
                [&](const Json &item, const Path &where) {
                  readTableConstraint(item, where, out);
                });
  if (const Json *reserves = object.find("reserves"))
    out.reserves = readReserves(reader, *reserves, Path(path, "reserves"));
  if (const Json *shards = object.find("fixed_shards"))
    reader.list(*shards, Path(path, "fixed_shards"),
                [&](const Json &item, const Path &where) {
                  out.fixedShards.push_back(readShard(reader, item, where));
                });
}

ShardingProblem WorkloadReader::read(const Json &root) {
  ShardingProblem problem;
  Path path;
  Object object(reader, root, path);
  readSchema(object, kWorkloadSchema);
  object.optional("source", problem.source);
  if (const Json *batch = object.findRequired("batch"))
    problem.batch = readBatch(*batch, Path(path, "batch"));
  if (const Json *tables = object.findRequired("tables")) {
    hasTables = tables->is_array();
    reader.list(*tables, Path(path, "tables"),
                [&](const Json &item, const Path &where) {
                  problem.tables.push_back(readTable(item, where));
                });
  }
  for (size_t i = 0; i < problem.tables.size(); ++i)
    tableOfName.emplace(problem.tables[i].name, static_cast<int>(i));
  if (const Json *features = object.findRequired("features"))
    reader.list(*features, Path(path, "features"),
                [&](const Json &item, const Path &where) {
                  problem.features.push_back(readFeature(item, where));
                });
  for (size_t i = 0; i < problem.features.size(); ++i)
    featureOfName.emplace(problem.features[i].name, static_cast<int>(i));
  if (const Json *snapshots = object.find("snapshots"))
    reader.list(*snapshots, Path(path, "snapshots"),
                [&](const Json &item, const Path &where) {
                  problem.snapshots.push_back(
                      readSnapshot(item, where, problem));
                });
  if (const Json *topology = object.find("topology")) {
    hasTopology = true;
    problem.topology = readTopology(reader, *topology, Path(path, "topology"));
  }
  if (const Json *constraints = object.find("constraints"))
    readConstraints(*constraints, Path(path, "constraints"),
                    problem.constraints);
  object.name("mode", problem.mode, parseStepMode);
  object.name("memory_model", problem.memoryModel, parseMemoryModel);
  object.name("target", problem.target, parseTarget);
  object.name("optimizer_semantics", problem.optimizerSemantics,
              parseOptimizerSemantics);
  object.optional("cache_load_factor", problem.cacheLoadFactor);
  return problem;
}

Diagnostics WorkloadReader::check(const ShardingProblem &problem) const {
  Diagnostics errors = reader.errors;
  // Without tables all that names one would be wrong, too.
  if (reader.isFull() || !hasTables)
    return errors;
  if (errors.size() != unknownNames.size()) {
    for (Diagnostic &error : checkWorkload(problem))
      if (!dependsOn(error.where, reader.unread))
        errors.push_back(std::move(error));
    return errors;
  }
  // The errors of unknown names, and of lists that hold one, are there already.
  auto isKnown = [&](const Diagnostic &error) {
    return std::ranges::any_of(unknownNames, [&](const std::string &place) {
      return place == error.where ||
             (place.ends_with(']') &&
              place.substr(0, place.rfind('[')) == error.where);
    });
  };
  for (Diagnostic &error :
       hasTopology ? neuroshard::check(problem) : checkWorkload(problem))
    if (!isKnown(error))
      errors.push_back(std::move(error));
  return errors;
}

} // namespace

Expected<ShardingProblem> neuroshard::parseWorkload(std::string_view text) {
  Expected<Json> root = parse(text);
  if (!root)
    return tl::unexpected(root.error());
  Diagnostics errors;
  WorkloadReader reader(errors);
  ShardingProblem problem = reader.read(*root);
  if (Diagnostics all = reader.check(problem); !all.empty())
    return tl::unexpected(std::move(all));
  return problem;
}

Expected<ShardingProblem> neuroshard::readWorkload(const std::string &path) {
  return readAs(path, parseWorkload);
}
