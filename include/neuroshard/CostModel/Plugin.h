//===- Plugin.h - Cost models of others, by name ----------------*- C++ -*-===//
//
// A library with cost models exports neuroshardCostModelPlugin(). Programs load
// it with loadCostModelPlugin(), tools with --load-cost-model-plugin, and both
// at first use with the environment variable NEUROSHARD_COST_MODEL_PLUGINS. A
// program with models of its own calls registerCostModel().
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_PLUGIN_H
#define NEUROSHARD_COSTMODEL_PLUGIN_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Planner/CostModel.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

/// Makes a model for problems on a topology, or says why there is none for it.
/// May be called from several threads, any number of times.
using CostModelMaker =
    std::function<Expected<std::unique_ptr<CostModel>>(const Topology &)>;

/// Takes the models of a library.
class CostModelRegistry {
public:
  virtual ~CostModelRegistry() = default;
  /// A name has letters, digits, '_', '-' and '.', is none of ours and no
  /// file's, and is given once.
  virtual void add(std::string name, CostModelMaker maker) = 0;
};

/// Differs between versions of this header, and where the library and the
/// program that loads it were compiled for other layouts of the types that they
/// share.
constexpr uint64_t costModelPluginVersion() {
  constexpr uint64_t kVersion = 1;
  uint64_t hash = kVersion;
  for (uint64_t size :
       {sizeof(ShardWork), sizeof(ShardSet), sizeof(Traffic), sizeof(Topology),
        sizeof(DeviceClass), sizeof(CostBound), sizeof(BoundTable),
        sizeof(Diagnostics), sizeof(CostModelMaker)})
    hash = hash * 1000003 + size;
  return hash;
}

/// What a library tells of itself.
struct CostModelPlugin {
  uint64_t version = costModelPluginVersion();
  void (*addModels)(CostModelRegistry &) = nullptr;
};

/// Loads a library and registers its models; again, it has no effect. The
/// library stays in the process. Errors name the file.
Expected<void> loadCostModelPlugin(const std::string &path);

/// Registers a model of this program. makeCostModel() then knows the name.
Expected<void> registerCostModel(std::string name, CostModelMaker maker);

/// In alphabetical order.
std::vector<std::string> registeredCostModels();

} // namespace neuroshard

/// Defined by the library. What it returns must stay valid.
extern "C" const neuroshard::CostModelPlugin *neuroshardCostModelPlugin();

#endif // NEUROSHARD_COSTMODEL_PLUGIN_H
