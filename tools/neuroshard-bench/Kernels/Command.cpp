//===- Command.cpp - The command `neuroshard-bench kernels` ---------------===//

#include "Bench.h"
#include "Measure.h"

#include "neuroshard/Model/Limits.h"
#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Serialization/Files.h"

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <unistd.h>
#include <utility>

namespace neuroshard {

using namespace bench;

namespace {

struct KernelsOptions {
  MeasureOptions measure;
  std::vector<std::string> shapes;
  std::vector<int64_t> custom;
  std::string optimizer;
  std::string json;
};

std::vector<std::string> optimizerNames() {
  std::vector<std::string> names;
  for (const OptimizerProperties &known : kOptimizers)
    names.emplace_back(known.name);
  return names;
}

/// Throws unless the sizes of --custom are those of tables that the machine
/// can hold.
void checkCustom(const std::vector<int64_t> &sizes) {
  constexpr std::array<std::pair<const char *, int64_t>, 5> kLargest = {
      {{"tables", 1 << 20},
       {"rows", kMaxRows},
       {"dim", kMaxDim},
       {"batch", kMaxBatch},
       {"ids per bag", static_cast<int64_t>(kMaxPooling)}}};
  for (size_t i = 0; i < kLargest.size(); ++i)
    if (auto [name, most] = kLargest[i]; sizes[i] < 1 || sizes[i] > most)
      throw std::runtime_error(std::string("--custom: expected ") + name +
                               " in [1, " + std::to_string(most) +
                               "], got: " + std::to_string(sizes[i]));
  auto size = [&](size_t i) { return static_cast<double>(sizes[i]); };
  double bytes =
      size(0) *
      (size(1) * size(2) * sizeof(float) +
       size(3) * (size(4) * sizeof(int64_t) + size(2) * sizeof(float)));
  double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<double>(sysconf(_SC_PAGESIZE));
  auto text = [](double value) {
    return formatBytes(static_cast<int64_t>(std::min(value, 0x1p62)));
  };
  if (bytes > memory)
    throw std::runtime_error("--custom: the tables and a batch take " +
                             text(bytes) + ", and the machine has " +
                             text(memory) + "; expected smaller sizes");
}

/// The shape of --custom for the forward pass, and for training with
/// --optimizer.
std::vector<Shape> customShapes(const KernelsOptions &options) {
  const std::vector<int64_t> &sizes = options.custom;
  checkCustom(sizes);
  Shape shape;
  shape.name = "custom";
  shape.tables = sizes[0];
  shape.rows = sizes[1];
  shape.dim = sizes[2];
  shape.batch = sizes[3];
  shape.pooling = sizes[4];
  std::vector<Shape> shapes = {shape};
  if (!options.optimizer.empty()) {
    shape.name = "custom-update";
    shape.optimizer = options.optimizer;
    shapes.push_back(shape);
  }
  return shapes;
}

std::vector<Shape> chosenShapes(const KernelsOptions &options) {
  if (!options.custom.empty())
    return customShapes(options);
  std::vector<Shape> all = usualShapes(), chosen;
  if (options.shapes.empty())
    return all;
  for (const std::string &name : options.shapes) {
    auto found = std::find_if(all.begin(), all.end(), [&](const Shape &shape) {
      return shape.name == name;
    });
    if (found == all.end()) {
      std::string names;
      for (const Shape &shape : all)
        names += " " + shape.name;
      throw std::runtime_error("there is no shape '" + name + "'; there are" +
                               names);
    }
    chosen.push_back(*found);
  }
  return chosen;
}

bool allAgree(const std::vector<ShapeFigures> &shapes) {
  for (const ShapeFigures &shape : shapes)
    for (const Figures &figures : shape.contenders)
      if (!figures.agrees())
        return false;
  return true;
}

Expected<void> runKernels(const KernelsOptions &options) {
  if (!options.json.empty())
    if (Expected<void> good = checkWritable(options.json); !good)
      return good;
  MeasureOptions measure = options.measure;
  if (measure.fbgemm.empty())
    measure.fbgemm = findFbgemm();
  std::vector<ShapeFigures> figures;
  for (const Shape &shape : chosenShapes(options)) {
    figures.push_back(measureShape(shape, measure));
    printShape(figures.back());
  }
  printAims(figures);
  if (!options.json.empty())
    if (Expected<void> done = writeFile(options.json, toJson(figures, measure));
        !done)
      return done;
  if (!allAgree(figures))
    return failure("", "results differ by more than they may");
  return {};
}

} // namespace

void addKernelsBenchmark(CommandLine &line) {
  auto options = std::make_shared<KernelsOptions>();
  MeasureOptions &measure = options->measure;
  Command command = line.addCommand(
      "kernels", "Lookups and updates on the CPU, beside PyTorch, FBGEMM and "
                 "what the machine can do");
  command.add("--threads", measure.threads, "of every contender").range(1, 256);
  command.add("--rounds", measure.rounds, "timed runs of each contender")
      .range(1, 10000);
  command
      .add("--seconds", measure.seconds, "of a shape's timed rounds, at most")
      .range(0.001, 3600.0);
  command.add("--seed", measure.seed, "of the ids");
  command
      .add("--fbgemm", measure.fbgemm,
           "folder of the package fbgemm_gpu; default: beside PyTorch")
      .existingFolder();
  CommandOption shapes =
      command.add("--shapes", options->shapes, "names of shapes; default: all");
  shapes.commas();
  command
      .add("--custom", options->custom,
           "another shape: tables,rows,dim,batch,ids per bag")
      .commas()
      .count(5)
      .excludes(shapes);
  command
      .add("--optimizer", options->optimizer,
           "also train the custom shape's tables with it")
      .oneOf(optimizerNames());
  command.add("--json", options->json, "file for the figures").output("file");
  command.action([options] { return runKernels(*options); });
}

} // namespace neuroshard
