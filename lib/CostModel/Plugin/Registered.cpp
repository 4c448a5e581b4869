//===- Registered.cpp - Cost models of others, by name --------------------===//

#include "Registered.h"

#include "CheckedModel.h"
#include "neuroshard/CostModel/ModelNames.h"
#include "neuroshard/CostModel/Plugin.h"
#include "neuroshard/Serialization/Files.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <utility>

using namespace neuroshard;
namespace fs = std::filesystem;

namespace {

constexpr const char *kPluginsVariable = "NEUROSHARD_COST_MODEL_PLUGINS";
constexpr const char *kEntryPoint = "neuroshardCostModelPlugin";

using Makers = std::map<std::string, CostModelMaker, std::less<>>;

/// All that is registered in this process. Its functions may be called from
/// several threads.
class Registered {
public:
  static Registered &get() {
    // Never destroyed: models may be made while other statics are.
    static auto *registered = new Registered;
    return *registered;
  }

  /// All of them, or none where one has a wrong name.
  Expected<void> add(Makers added) {
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto &[name, maker] : added)
      if (makers.contains(name))
        return failure("cost model '" + name + "'",
                       "is registered already, by another library or by the "
                       "program; expected another name");
    makers.merge(added);
    return {};
  }

  CostModelMaker find(std::string_view name) const {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = makers.find(name);
    return found == makers.end() ? CostModelMaker() : found->second;
  }

  std::vector<std::string> names() const {
    std::lock_guard<std::mutex> lock(mutex);
    std::vector<std::string> names;
    for (const auto &[name, maker] : makers)
      names.push_back(name);
    return names;
  }

  Expected<void> load(const std::string &path);
  Expected<void> loadOfEnvironment();

private:
  mutable std::mutex mutex;
  Makers makers;
  /// Held while a library is loaded, whose initialisers may register models.
  std::recursive_mutex loading;
  std::set<void *> libraries;
  bool hasReadEnvironment = false;
};

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

Expected<void> checkName(const std::string &name, const CostModelMaker &maker) {
  std::string where = "cost model '" + name + "'";
  if (name.empty() || !std::ranges::all_of(name, isNameCharacter))
    return failure(where, "expected a name of letters, digits, '_', '-' and "
                          "'.'");
  if (isBuiltInCostModel(name))
    return failure(where, "is one of NeuroShard's own, or the name of a file; "
                          "expected another name");
  if (!maker)
    return failure(where, "expected a function that makes the model");
  return {};
}

/// The models of one library, before they are registered together.
class Collected final : public CostModelRegistry {
public:
  void add(std::string name, CostModelMaker maker) override {
    if (Expected<void> right = checkName(name, maker); !right)
      errors.insert(errors.end(), right.error().begin(), right.error().end());
    else if (!makers.try_emplace(name, std::move(maker)).second)
      errors.push_back({"cost model '" + name + "'", "is given twice"});
  }

  Makers makers;
  Diagnostics errors;
};

Expected<void> addModelsOf(void *library, const std::string &path) {
  using EntryPoint = const CostModelPlugin *(*)();
  auto entry = reinterpret_cast<EntryPoint>(dlsym(library, kEntryPoint));
  const CostModelPlugin *plugin = entry ? entry() : nullptr;
  if (!plugin)
    return failure(path, "is no library with cost models: expected the "
                         "function " +
                             std::string(kEntryPoint) +
                             " of neuroshard/CostModel/Plugin.h");
  if (plugin->version != costModelPluginVersion() || !plugin->addModels)
    return failure(path, "was built with another version of NeuroShard, or "
                         "for another C++ library; build it against this one");
  Collected collected;
  try {
    plugin->addModels(collected);
  } catch (const std::exception &error) {
    return failure(path, std::string("threw while it registered its models: ") +
                             error.what());
  }
  if (collected.makers.empty() && collected.errors.empty())
    return failure(path, "registers no cost model");
  if (!collected.errors.empty())
    return tl::unexpected(inFile(path, collected.errors));
  if (auto added = Registered::get().add(std::move(collected.makers)); !added)
    return tl::unexpected(inFile(path, added.error()));
  return {};
}

Expected<void> Registered::load(const std::string &path) {
  std::lock_guard<std::recursive_mutex> lock(loading);
  std::error_code error;
  // A name without a folder would be looked for among the system's libraries.
  std::string file = fs::absolute(path, error).string();
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return failure(path, std::string("cannot be loaded as a library with cost "
                                     "models: ") +
                             (why ? why : "unknown error"));
  }
  if (libraries.contains(library))
    return {};
  if (Expected<void> added = addModelsOf(library, path); !added)
    return added;
  libraries.insert(library);
  return {};
}

/// Does so until it succeeds.
Expected<void> Registered::loadOfEnvironment() {
  std::lock_guard<std::recursive_mutex> lock(loading);
  const char *given = std::getenv(kPluginsVariable);
  if (hasReadEnvironment || !given)
    return {};
  for (std::string_view rest = given; !rest.empty();) {
    size_t colon = rest.find(':');
    if (std::string path(rest.substr(0, colon)); !path.empty())
      if (Expected<void> loaded = load(path); !loaded)
        return tl::unexpected(inFile(kPluginsVariable, loaded.error()));
    rest.remove_prefix(colon == std::string_view::npos ? rest.size()
                                                       : colon + 1);
  }
  hasReadEnvironment = true;
  return {};
}

} // namespace

Expected<void> neuroshard::loadCostModelPlugin(const std::string &path) {
  return Registered::get().load(path);
}

Expected<void> neuroshard::registerCostModel(std::string name,
                                             CostModelMaker maker) {
  if (Expected<void> right = checkName(name, maker); !right)
    return right;
  Makers one;
  one.emplace(std::move(name), std::move(maker));
  return Registered::get().add(std::move(one));
}

std::vector<std::string> neuroshard::registeredCostModels() {
  return Registered::get().names();
}

Expected<std::unique_ptr<CostModel>>
neuroshard::makeRegistered(std::string_view name, const Topology &topology) {
  if (auto loaded = Registered::get().loadOfEnvironment(); !loaded)
    return tl::unexpected(loaded.error());
  CostModelMaker make = Registered::get().find(name);
  if (!make)
    return nullptr;
  std::string where = "cost model '" + std::string(name) + "'";
  try {
    Expected<std::unique_ptr<CostModel>> model = make(topology);
    if (!model)
      return tl::unexpected(inFile(where, model.error()));
    if (!*model)
      return failure(where, "its library made none for the topology");
    return makeChecked(*std::move(model), std::string(name));
  } catch (const std::exception &error) {
    return failure(where, std::string("its library threw: ") + error.what());
  }
}
