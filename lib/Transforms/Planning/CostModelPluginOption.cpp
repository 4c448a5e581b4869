//===- CostModelPluginOption.cpp - --load-cost-model-plugin ---------------===//

#include "neuroshard/Transforms/CostModelPluginOption.h"

#include "neuroshard/CostModel/Plugin.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/WithColor.h"

#include <cstdlib>
#include <string>

void neuroshard::addCostModelPluginOption() {
  static llvm::cl::list<std::string> libraries(
      "load-cost-model-plugin",
      llvm::cl::desc("Load cost models for 'cost-model' from a library"),
      llvm::cl::value_desc("library"),
      llvm::cl::cb<void, std::string>([](const std::string &path) {
        Expected<void> loaded = loadCostModelPlugin(path);
        if (loaded)
          return;
        llvm::WithColor::error(llvm::errs(), "--load-cost-model-plugin")
            << toString(loaded.error()) << "\n";
        std::exit(EXIT_FAILURE);
      }));
}
