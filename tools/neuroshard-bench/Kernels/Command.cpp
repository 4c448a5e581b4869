//===- Command.cpp - The command `neuroshard-bench kernels` ---------------===//

#include "Bench.h"
#include "Measure.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <stdexcept>

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

/// The shape of --custom for the forward pass, and for training with
/// --optimizer.
std::vector<Shape> customShapes(const KernelsOptions &options) {
  const std::vector<int64_t> &sizes = options.custom;
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

void writeFile(const std::string &path, const std::string &text) {
  std::ofstream file(path);
  if (!(file << text).flush())
    throw std::runtime_error("cannot write " + path);
}

void runKernels(const KernelsOptions &options) {
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
    writeFile(options.json, toJson(figures, measure));
  if (!allAgree(figures))
    throw std::runtime_error("results differ by more than they may");
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
      .range(int64_t{1}, int64_t{1} << 40)
      .excludes(shapes);
  command
      .add("--optimizer", options->optimizer,
           "also train the custom shape's tables with it")
      .oneOf({"sgd", "adagrad", "rowwise_adagrad", "adam"});
  command.add("--json", options->json, "file for the figures");
  command.action([options]() -> Expected<void> {
    runKernels(*options);
    return {};
  });
}

} // namespace neuroshard
