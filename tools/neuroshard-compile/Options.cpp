//===- Options.cpp - Command line of neuroshard-compile -------------------===//

#include "Options.h"

#include "CommandLine.h"
#include "DialectVersion.h"

#include "neuroshard/CostModel/Plugin.h"
#include "neuroshard/Planner/SearchOptionTable.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

namespace neuroshard {
namespace {

/// The options that are asked for once the line is read.
struct GivenOptions {
  /// Have an effect on devices of GPUs alone.
  std::vector<CommandOption> ofGpus;
  /// Say how to plan, shard or partition.
  std::vector<CommandOption> beforePartitioning;
  /// Have an effect with --raise alone.
  std::vector<CommandOption> ofRaising;
  /// Libraries with cost models.
  std::vector<std::string> costModelPlugins;
  std::string gpuOutput = "f32";
};

void addRaiseOptions(Command &command, CompileOptions &options,
                     GivenOptions &given) {
  const std::string group = "Raising (see neuroshard-raise-lookups)";
  given.beforePartitioning.push_back(
      command
          .addFlag("--raise", options.raises,
                   "first make lookups of what other dialects spell out, and "
                   "say what looked like one and stays")
          .group(group));
  RaiseLookupsOptions &raise = options.raise;
  given.ofRaising = {
      command.addFlag("--strict", raise.strict,
                      "what looks like a lookup and stays is an error"),
      command.addFlag("--jagged-arguments", raise.jaggedArguments,
                      "ids, offsets and weights that are arguments become one "
                      "jagged argument"),
      command.addFlag("--assume-valid-inputs", raise.assumeValidInputs,
                      "ids are rows of their tables, and offsets begin at 0"),
      command
          .add("--weights-file", raise.weightsFile,
               "file for the rows of constants, as safetensors")
          .output("file")};
  for (CommandOption &option : given.ofRaising)
    option.group(group);
}

void addPlanOptions(Command &command, CompileOptions &options,
                    GivenOptions &given) {
  auto add = [&](const std::string &name, auto &value,
                 const std::string &help) {
    given.beforePartitioning.push_back(
        command.add(name, value, help)
            .group("Planning (see neuroshard-plan)")
            .withoutDefault());
  };
  add("--load-cost-model-plugin", given.costModelPlugins,
      "libraries with cost models for --cost-model, separated by commas");
  given.beforePartitioning.back().commas();
  add("--device-class", options.grid.deviceClass,
      "devices of the module's shard.grid, such as H200 or "
      "MYCARD@cards.json");
  auto addSearch = [&](std::string_view key, auto &value) {
    const SearchOption &option = searchOption(key);
    add("--" + option.flag, value, helpOf(option));
  };
  PlanOptions &plan = options.plan;
#define SEARCH_TEXT(ID, KEY, ...) addSearch(KEY, plan.ID);
#define SEARCH_WHOLE(ID, KEY, ...) addSearch(KEY, plan.ID);
#define SEARCH_NUMBER(ID, KEY, ...) addSearch(KEY, plan.ID);
#include "neuroshard/Planner/SearchOptions.def"
#define PROBLEM_TEXT(ID, FLAG, HELP) add("--" FLAG, plan.ID, HELP);
#define PROBLEM_COUNT(ID, FLAG, HELP) add("--" FLAG, plan.ID.value, HELP);
#include "neuroshard/Transforms/ProblemOptions.def"
}

void addGpuOptions(Command &command, CompileOptions &options,
                   GivenOptions &given) {
  const std::string group = "GPUs";
  command
      .add("--gpu", options.gpu.archs,
           "architectures to compile kernels for, such as sm_80,sm_90; newer "
           "ones run the PTX")
      .commas()
      .group(group);
  given.ofGpus.push_back(command
                             .add("--gpu-output", given.gpuOutput,
                                  "type of the results that kernels write")
                             .oneOf({"f32", "f16", "bf16"})
                             .group(group));
  command
      .addFlag("--emulate", options.emulate,
               "also compile the kernels for the emulator, which runs them "
               "without a GPU")
      .group(group);
  given.ofGpus.push_back(command
                             .add("--cuda-toolkit", options.gpu.toolkit,
                                  "folder of a CUDA toolkit, with bin/ptxas")
                             .group(group));
}

void addOptions(Command &command, CompileOptions &options,
                GivenOptions &given) {
  command
      .add("input", options.input, "logical or planned IR; - is standard input")
      .required();
  command
      .add("-o,--output", options.output,
           "directory to write; an artifact that is there is replaced, if it "
           "has "
           "no other files")
      .output("folder")
      .required();
  given.beforePartitioning = {
      command.add("--entry", options.entry,
                  "function to compile, if several have lookups"),
      command.add("--plan", options.planFile, "plan to follow, as JSON"),
      command.addFlag("--reference", options.reference,
                      "also compile the unsharded program, as reference.so"),
      command.addFlag("--training", options.training,
                      "also compile the update"),
      command.addFlag("--local-reductions", options.partition.localReductions,
                      "allow reductions over the samples, by each device over "
                      "its part of the batch")};
  command.addFlag("--emit-ir", options.emitIR,
                  "also write the IR of each level, to the folder ir");
  command.add("--target-cpu", options.native.targetCpu,
              "host, or a CPU by LLVM's name");
  command.add("-O", options.native.optLevel, "optimisation level, 0 to 3")
      .range(0, 3);
  command.addFlag("--address-sanitizer", options.native.addressSanitizer,
                  "instrument the code of CPUs for LLVM's address sanitizer; "
                  "runs only in processes that have it");
  command
      .add("--crash-reproducer", options.native.crashReproducer,
           "file for a module and the passes that fail on it, for "
           "neuroshard-opt --run-reproducer")
      .output("file");
  addGpuOptions(command, options, given);
  addRaiseOptions(command, options, given);
  addPlanOptions(command, options, given);
}

/// What depends on several options.
Expected<void> finish(CompileOptions &options, const GivenOptions &given) {
  auto isGiven = [](const CommandOption &option) { return option.isGiven(); };
  if (options.gpu.archs.empty() && !options.emulate &&
      llvm::any_of(given.ofGpus, isGiven))
    return failure("", "--gpu-output and --cuda-toolkit have an effect only "
                       "with --gpu or --emulate");
  for (const CommandOption &option : given.ofRaising)
    if (option.isGiven() && !options.raises)
      return failure("", option.name() + " has an effect only with --raise");
  for (const std::string &library : given.costModelPlugins)
    if (Expected<void> loaded = loadCostModelPlugin(library); !loaded)
      return tl::unexpected(loaded.error());
  options.gpu.crashReproducer = options.native.crashReproducer;
  options.gpuProgram.output = *parseElementType(given.gpuOutput);
  for (const CommandOption &option : given.beforePartitioning)
    if (option.isGiven())
      options.beforePartitioning.push_back(option.name());
  return {};
}

} // namespace

std::optional<int> parseOptions(int argc, char **argv,
                                CompileOptions &options) {
  CommandLine line("neuroshard-compile",
                   "Compiles a model with embedding tables to programs for the "
                   "devices of a cluster");
  line.addToVersion(dialectVersion());
  Command command = line.program();
  command.helpColumn(34);
  GivenOptions given;
  addOptions(command, options, given);
  bool isRead = false;
  command.action([&]() -> Expected<void> {
    isRead = true;
    return finish(options, given);
  });
  int exitCode = line.run(argc, argv);
  return isRead && exitCode == 0 ? std::nullopt : std::optional<int>(exitCode);
}

} // namespace neuroshard
