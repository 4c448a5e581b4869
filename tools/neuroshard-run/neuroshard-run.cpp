//===- neuroshard-run.cpp - Runs an artifact on this machine --------------===//
//
// Opens what neuroshard-compile wrote, runs it on random batches with all
// devices in this process, and compares with the unsharded program.
//
//===----------------------------------------------------------------------===//

#include "Drive.h"

#include "neuroshard/Serialization/Json.h"

#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>

using namespace neuroshard;

static run::Pooling readPooling(const std::string &workload) {
  Expected<ShardingProblem> problem = readWorkload(workload);
  if (!problem)
    throw std::runtime_error(toString(problem.error()));
  run::Pooling pooling;
  for (const Feature &feature : problem->features)
    pooling.meanOfFeature[feature.name] =
        feature.meanPooling * feature.presence;
  return pooling;
}

int main(int argc, char **argv) {
  run::DriveOptions options;
  std::string workload;
  double mean = 1;
  bool poisson = false;
  CLI::App app("Runs an artifact on random batches, all devices in this "
               "process, and compares it with the unsharded program");
  app.add_option("artifact", options.directory,
                 "folder that neuroshard-compile has written")
      ->required();
  app.add_option("--function", options.function, "function to run")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "global batch, samples")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31))
      ->capture_default_str();
  app.add_option("--steps", options.steps)
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--workload", workload,
                 "workload JSON with the mean pooling of the features");
  app.add_option("--pooling", mean, "mean ids per sample of other features")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--poisson", poisson,
               "draw the number of ids of a sample around the mean");
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_option("--threads", options.threadsPerDevice,
                 "threads per device, 0: the machine's, divided")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--train", options.train,
               "also update the tables, with random gradients");
  app.add_option("--learning-rate", options.learningRate)
      ->capture_default_str();
  app.add_option("--tolerance", options.tolerance,
                 "largest difference from the unsharded program")
      ->capture_default_str();
  try {
    app.parse(argc, argv);

    if (!workload.empty())
      options.pooling = readPooling(workload);
    options.pooling.otherwise = mean;
    options.pooling.poisson = poisson;
    run::drive(options, std::cout);
    return 0;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  } catch (const std::exception &error) {
    std::cerr << "neuroshard-run: " << error.what() << "\n";
    return 1;
  }
}
