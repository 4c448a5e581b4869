//===- Options.cpp - Command line of neuroshard-run -----------------------===//

#include "Options.h"

#include "Devices.h"

namespace neuroshard::run {

void addOptions(Command &program, DriveOptions &options) {
  program
      .add("artifact", options.directory,
           "folder that neuroshard-compile has written")
      .required();
  program.add("--function", options.function, "function to run");
  program.add("--batch", options.batch, "global batch, samples")
      .range(int64_t{1}, int64_t{1} << 31);
  program.add("--steps", options.steps).range(1, 1000000);
  program.add("--workload", options.workload,
              "workload JSON with the mean pooling of the features");
  program
      .add("--pooling", options.pooling.otherwise,
           "mean ids per sample of other features")
      .range(0.0, 1e6);
  program.addFlag("--poisson", options.pooling.poisson,
                  "draw the number of ids of a sample around the mean");
  program.add("--seed", options.seed);
  program
      .add("--threads", options.threadsPerDevice,
           "threads per device, 0: the machine's, divided")
      .range(0, 1024);
  program
      .add("--device", options.device,
           "where lookups and updates run: on threads of the host, on GPUs "
           "(neuroshard-compile --gpu), or on emulated ones (--emulate)")
      .oneOf(deviceNames());
  program.add("--tier-dir", options.tierDirectory,
              "folder for the files of shards in tier \"ssd\" (default: that "
              "of NEUROSHARD_TIER_DIRECTORY)");
  program.addFlag("--train", options.train,
                  "also update the tables, with random gradients");
  program.add("--learning-rate", options.learningRate).range(0.0, 1e30);
  program
      .add("--pipeline-depth", options.pipelineDepth,
           "batches in flight while training: ids of the next ones are sent "
           "when the results of this one are there")
      .range(1, 64);
  program.add("--tolerance", options.tolerance,
              "largest difference from the unsharded program; negative: by the "
              "type in which results travel");
}

} // namespace neuroshard::run
