//===- PlanningSnapshots.cpp - Statistics of several periods --------------===//

#include "PlanningSnapshots.h"

#include "StatisticsAttrs.h"

using namespace mlir;
using namespace neuroshard;

static int featureIndex(const ShardingProblem &problem, llvm::StringRef name) {
  for (size_t i = 0; i < problem.features.size(); ++i)
    if (name == problem.features[i].name)
      return static_cast<int>(i);
  return -1;
}

static void readFeature(DictionaryReader &reader,
                        const ShardingProblem &problem, Snapshot &snapshot) {
  FeatureStatistics &entry = snapshot.features.emplace_back();
  reader.read("feature", "the name of a feature of the module, as a string",
              [&](Attribute value) {
                auto name = dyn_cast<StringAttr>(value);
                entry.feature =
                    name ? featureIndex(problem, name.getValue()) : -1;
                return entry.feature >= 0;
              });
  // A period has no batch of its own and does not state gradients.
  reader.read("stats",
              "a #neuroshard.feature without batch and weight_gradient",
              [&](Attribute value) {
                auto stats = dyn_cast<ir::FeatureAttr>(value);
                if (!stats || stats.getBatch() || stats.getWeightGradient())
                  return false;
                Feature feature;
                readStatistics(stats, feature);
                entry.meanPooling = feature.meanPooling;
                entry.p99Pooling = feature.p99Pooling;
                entry.presence = feature.presence;
                return true;
              });
}

static void readTable(DictionaryReader &reader, Snapshot &snapshot) {
  TableStatistics &entry = snapshot.tables.emplace_back();
  reader.table("table", entry.table);
  reader.read("access", "a #neuroshard.access", [&](Attribute value) {
    auto access = dyn_cast<ir::AccessAttr>(value);
    if (access)
      entry.access = accessFrom(access);
    return static_cast<bool>(access);
  });
}

void neuroshard::readSnapshots(DictionaryReader &reader,
                               ShardingProblem &problem) {
  reader.items("snapshots", [&](DictionaryReader &item) {
    Snapshot &snapshot = problem.snapshots.emplace_back();
    item.text("name", snapshot.name);
    item.number("weight", snapshot.weight);
    item.items("features", [&](DictionaryReader &entry) {
      readFeature(entry, problem, snapshot);
    });
    item.items("tables",
               [&](DictionaryReader &entry) { readTable(entry, snapshot); });
  });
}

static Attribute writeFeature(const ShardingProblem &problem,
                              const FeatureStatistics &entry,
                              Builder &builder) {
  Feature feature;
  feature.meanPooling = entry.meanPooling;
  feature.p99Pooling = entry.p99Pooling;
  feature.presence = entry.presence;
  return builder.getDictionaryAttr(
      {builder.getNamedAttr(
           "feature",
           builder.getStringAttr(
               problem.features[static_cast<size_t>(entry.feature)].name)),
       builder.getNamedAttr("stats", featureAttr(feature, builder))});
}

static Attribute writeTable(const ShardingProblem &problem,
                            const TableStatistics &entry, Builder &builder) {
  return builder.getDictionaryAttr(
      {builder.getNamedAttr(
           "table", FlatSymbolRefAttr::get(
                        builder.getContext(),
                        problem.tables[static_cast<size_t>(entry.table)].name)),
       builder.getNamedAttr("access",
                            accessAttr(entry.access, builder.getContext()))});
}

ArrayAttr neuroshard::writeSnapshots(const ShardingProblem &problem,
                                     Builder &builder) {
  SmallVector<Attribute> snapshots;
  for (const Snapshot &snapshot : problem.snapshots) {
    SmallVector<Attribute> features, tables;
    for (const FeatureStatistics &entry : snapshot.features)
      features.push_back(writeFeature(problem, entry, builder));
    for (const TableStatistics &entry : snapshot.tables)
      tables.push_back(writeTable(problem, entry, builder));
    SmallVector<NamedAttribute> entries = {
        builder.getNamedAttr("name", builder.getStringAttr(snapshot.name)),
        builder.getNamedAttr("weight",
                             builder.getF64FloatAttr(snapshot.weight))};
    if (!features.empty())
      entries.push_back(
          builder.getNamedAttr("features", builder.getArrayAttr(features)));
    if (!tables.empty())
      entries.push_back(
          builder.getNamedAttr("tables", builder.getArrayAttr(tables)));
    snapshots.push_back(builder.getDictionaryAttr(entries));
  }
  return snapshots.empty() ? ArrayAttr() : builder.getArrayAttr(snapshots);
}
