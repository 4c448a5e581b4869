//===- Options.cpp - Command line of neuroshard-compile -------------------===//

#include "Options.h"

#include "Numbers.h"

#include "neuroshard/Planner/SearchOptionTable.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <CLI/CLI.hpp>

#include <map>

namespace neuroshard {

constexpr const char *kPlanning = "Planning (see neuroshard-plan)";

/// An option; numbers must be written as neuroshard-run reads them.
template <typename T>
static CLI::Option *addOption(CLI::App &app, const std::string &name, T &value,
                              const std::string &help) {
  CLI::Option *option = app.add_option(name, value, help);
  if constexpr (std::is_arithmetic_v<T>)
    option->transform(CLI::Validator(normalizeNumber<T>, ""));
  return option;
}

static void addPlanOptions(CLI::App &app, PlanOptions &plan,
                           TopologyFromGridOptions &grid) {
  auto add = [&](const char *name, auto &value, const char *help) {
    addOption(app, name, value, help)->group(kPlanning);
  };
  add("--device-class", grid.deviceClass,
      "devices of the module's shard.grid, such as H200");
  auto addSearch = [&](std::string_view key, auto &value) {
    const SearchOption &option = searchOption(key);
    addOption(app, "--" + option.flag, value, helpOf(option))->group(kPlanning);
  };
#define SEARCH_TEXT(ID, KEY, ...) addSearch(KEY, plan.ID);
#define SEARCH_WHOLE(ID, KEY, ...) addSearch(KEY, plan.ID);
#define SEARCH_NUMBER(ID, KEY, ...) addSearch(KEY, plan.ID);
#include "neuroshard/Planner/SearchOptions.def"
#define PROBLEM_TEXT(ID, FLAG, HELP) add("--" FLAG, plan.ID, HELP);
#define PROBLEM_COUNT(ID, FLAG, HELP) add("--" FLAG, plan.ID, HELP);
#include "neuroshard/Transforms/ProblemOptions.def"
}

static void addGpuOptions(CLI::App &app, CompileOptions &options) {
  const std::string group = "GPUs";
  app.add_option("--gpu", options.gpu.archs,
                 "architectures to compile kernels for, such as sm_80,sm_90; "
                 "newer ones run the PTX")
      ->delimiter(',')
      ->group(group);
  app.add_option("--gpu-output", options.gpuProgram.output,
                 "type of the results that kernels write")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, ElementType>{{"f32", ElementType::F32},
                                             {"f16", ElementType::F16},
                                             {"bf16", ElementType::BF16}}))
      ->option_text("f32 (default), f16 or bf16")
      ->group(group);
  addOption(app, "--small-rows", options.gpuProgram.smallRows,
            "shards of at most so many rows are updated without a sort; 0: "
            "none")
      ->check(CLI::Range(0, NSG_MOST_SMALL_ROWS))
      ->group(group);
  app.add_flag("--emulate", options.emulate,
               "also compile the kernels for the emulator, which runs them "
               "without a GPU")
      ->group(group);
  app.add_option("--cuda-toolkit", options.gpu.toolkit,
                 "folder of a CUDA toolkit, with bin/ptxas")
      ->group(group);
}

static void addOptions(CLI::App &app, CompileOptions &options) {
  app.add_option("input", options.input,
                 "logical or planned IR; - is standard input")
      ->required();
  app.add_option("-o,--output", options.output,
                 "directory to write; an artifact that is there is replaced")
      ->required();
  app.add_flag("--training", options.training, "also compile the update");
  app.add_option("--plan", options.planFile, "plan to follow, as JSON");
  app.add_option("--entry", options.entry,
                 "function to compile, if several have lookups");
  app.add_flag("--reference", options.reference,
               "also compile the unsharded program, as reference.so");
  app.add_flag("--emit-ir", options.emitIR,
               "also write the IR of each level, to the folder ir");
  app.add_option("--target-cpu", options.native.targetCpu,
                 "host, or a CPU by LLVM's name");
  addOption(app, "-O", options.native.optLevel, "optimisation level, 0 to 3")
      ->check(CLI::Range(0, 3));
  addGpuOptions(app, options);
  addPlanOptions(app, options.plan, options.grid);
}

/// The flags given that state how to plan, shard or partition.
static std::vector<std::string> flagsBeforePartitioning(const CLI::App &app) {
  std::vector<std::string> flags;
  for (const char *flag : {"--entry", "--plan", "--reference", "--training"})
    if (app.count(flag))
      flags.push_back(flag);
  for (const CLI::Option *option : app.get_options())
    if (option->get_group() == kPlanning && option->count())
      flags.push_back(option->get_name());
  return flags;
}

std::optional<int> parseOptions(int argc, char **argv,
                                CompileOptions &options) {
  CLI::App app("Compiles a model with embedding tables to programs for the "
               "devices of a cluster");
  app.get_formatter()->column_width(34);
  addOptions(app, options);
  try {
    app.parse(argc, argv);
    options.beforePartitioning = flagsBeforePartitioning(app);
    if (options.gpu.archs.empty() && !options.emulate &&
        (app.count("--gpu-output") || app.count("--cuda-toolkit") ||
         app.count("--small-rows")))
      throw CLI::ValidationError(
          "--gpu-output, --small-rows and --cuda-toolkit have an effect only "
          "with --gpu or --emulate");
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  return std::nullopt;
}

} // namespace neuroshard
