//===- ProjectContender.cpp - Compiled kernels, as users run them ---------===//
//
// Writes the model as MLIR, has neuroshard-compile make an artifact of it for
// one CPU, and runs the artifact's functions through the runtime's C
// interface: ids and offsets are checked, results are new memory.
//
//===----------------------------------------------------------------------===//

#include "Contender.h"

#include "neuroshard/Artifact/StepNames.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>

extern char **environ;

namespace neuroshard::bench {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string &what) {
  throw std::runtime_error(what);
}

std::string numbered(const char *prefix, int64_t number) {
  std::string name(prefix);
  return name.append(std::to_string(number));
}

std::string optimizerText(const Shape &shape) {
  if (!shape.isTraining())
    return "";
  std::string text = " {optimizer = #neuroshard.optimizer<";
  text += shape.optimizer;
  if (shape.optimizer != "sgd")
    text += ", eps = 1.0e-08";
  return text + ">}";
}

/// The logical module: one function with a lookup for each table.
std::string modelText(const Shape &shape) {
  std::string features, tables, lookups, names, types;
  for (int64_t t = 0; t < shape.tables; ++t) {
    std::string number = std::to_string(t);
    std::string separator = t ? ", " : "";
    std::string type = "tensor<?x" + std::to_string(shape.dim) + "xf32>";
    features += separator + "\"f" + number + "\"";
    tables += "  neuroshard.table private @t" + number + " : " +
              std::to_string(shape.rows) + " x " + std::to_string(shape.dim) +
              " x " + shape.element + optimizerText(shape) + "\n";
    lookups += "    %r" + number + " = neuroshard.lookup " +
               (shape.mean ? "mean" : "sum") + " @t" + number + "[%ids, \"f" +
               number + "\"]" + (shape.weighted ? " weighted" : "") +
               " : !ids -> " + type + "\n";
    names += separator + "%r" + number;
    types += separator + type;
  }
  return "!ids = !neuroshard.jagged<[" + features + "], i64" +
         (shape.weighted ? ", weighted" : "") +
         ">\nmodule attributes {neuroshard.batch = " +
         std::to_string(shape.batch) + " : i64} {\n" + tables +
         "  func.func @forward(%ids: !ids) -> (" + types + ") {\n" + lookups +
         "    return " + names + " : " + types + "\n  }\n}\n";
}

/// A folder for temporary files, removed with the object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    path = (fs::temp_directory_path() / "neuroshard-bench-XXXXXX").string();
    if (!mkdtemp(path.data()))
      fail("cannot make a temporary folder " + path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path;
};

void runProgram(std::vector<std::string> words) {
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, words[0].c_str(), nullptr, nullptr, arguments.data(),
                  environ) != 0 ||
      waitpid(child, &status, 0) != child)
    fail("cannot run " + words[0] + "; build the target of that name");
  if (status != 0)
    fail(words[0] + " failed");
}

/// neuroshard-compile is beside this program.
void compile(const Shape &shape, const TemporaryFolder &folder) {
  std::string model = folder.path + "/model.mlir";
  std::ofstream(model) << modelText(shape);
  fs::path self = fs::read_symlink("/proc/self/exe");
  std::vector<std::string> command = {
      (self.parent_path() / "neuroshard-compile").string(),
      model,
      "-o",
      folder.path + "/compiled",
      "--topology",
      "1xCPU@1024GiB"};
  if (shape.isTraining())
    command.push_back("--training");
  runProgram(std::move(command));
}

/// The strided descriptor of a contiguous array.
std::vector<int64_t> describe(const void *data, std::vector<int64_t> sizes) {
  std::vector<int64_t> words(3 + 2 * sizes.size());
  words[0] = words[1] = reinterpret_cast<intptr_t>(data);
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    words[3 + i] = sizes[i];
    words[3 + sizes.size() + i] = stride;
    stride *= sizes[i];
  }
  return words;
}

struct CloseWorld {
  void operator()(nsrt_world *world) const { nsrt_world_close(world); }
};

class CompiledProject final : public Project {
public:
  CompiledProject(const Shape &shape, int threads) : shape(shape) {
    compile(shape, folder);
    world.reset(nsrt_world_open((folder.path + "/compiled").c_str(), threads));
    if (!world || nsrt_table_initialize(world.get(), -1, 1))
      fail(nsrt_last_error());
    device = nsrt_world_device(world.get(), 0);
    results.resize(static_cast<size_t>(shape.tables) * kResultWords + 1);
  }
  ~CompiledProject() override { CompiledProject::drop(); }

  void setGradient(const std::vector<float> &values) override {
    gradient = values.data();
  }

  void run(const IdSet &ids) override {
    if (shape.isTraining())
      train(ids);
    else
      call("forward", withIds(ids), results.data());
    live = true;
  }

  RowsView result(int64_t table) override {
    return {reinterpret_cast<const float *>(
                results[static_cast<size_t>(table) * kResultWords + 1]),
            shape.dim};
  }

  void drop() override {
    for (int64_t t = 0; live && t < shape.tables; ++t)
      nsrt_tensor_free(reinterpret_cast<void *>(
          results[static_cast<size_t>(t) * kResultWords]));
    live = false;
  }

  void readTable(int64_t table, float *out) override {
    readValues(table, out); // only f32 tables are trained here
  }

  TableValues tableValues() override {
    return [this](int64_t table, void *out) { readValues(table, out); };
  }

private:
  static constexpr size_t kResultWords = 7; // a descriptor of rank 2
  using Words = std::vector<std::vector<int64_t>>;

  void readValues(int64_t table, void *out) {
    int32_t index =
        nsrt_world_find_table(world.get(), numbered("t", table).c_str());
    if (nsrt_table_read(world.get(), index, 0, shape.rows, out))
      fail(nsrt_last_error());
  }

  Words withIds(const IdSet &ids) const {
    Words words = {
        describe(ids.ids.data(), {static_cast<int64_t>(ids.ids.size())}),
        describe(ids.offsets.data(),
                 {static_cast<int64_t>(ids.offsets.size())})};
    if (shape.weighted)
      words.push_back(describe(ids.weights.data(),
                               {static_cast<int64_t>(ids.weights.size())}));
    return words;
  }

  /// Calls a function with the device and these descriptors and words.
  /// `returned`: gets its results; null if it has none.
  void call(const char *name, Words words, int64_t *returned) {
    std::vector<void *> arguments;
    if (returned)
      arguments.push_back(returned);
    arguments.push_back(device);
    for (std::vector<int64_t> &word : words)
      arguments.push_back(word.data());
    if (nsrt_invoke(device, name, arguments.data()))
      fail(nsrt_last_error());
  }

  /// The functions of a training step. A handle is one word: the result of the
  /// first, both of the second, behind the third's tensors, which stay, and
  /// both of the fourth.
  void train(const IdSet &ids) {
    call(kStartName, withIds(ids), results.data());
    call(kLookupName, {{results[0]}}, results.data());
    call(kWaitName, {{results[0]}, {results[1]}}, results.data());
    Words words = {{results.back()}};
    for (int64_t t = 0; t < shape.tables; ++t)
      words.push_back(describe(gradient + t * shape.batch * shape.dim,
                               {shape.batch, shape.dim}));
    std::array<int64_t, 2> sent = {};
    call(kGradientsName, std::move(words), sent.data());
    words = {{sent[0]}, {sent[1]}};
    int64_t rate = 0;
    auto rateValue = static_cast<float>(kLearningRate);
    std::memcpy(&rate, &rateValue, sizeof(rateValue));
    words.push_back({rate});
    words.push_back({++step});
    call(kUpdateName, std::move(words), nullptr);
  }

  const Shape shape;
  TemporaryFolder folder;
  std::unique_ptr<nsrt_world, CloseWorld> world;
  nsrt_device *device = nullptr;
  const float *gradient = nullptr;
  std::vector<int64_t> results;
  bool live = false;
  int64_t step = 0;
};

} // namespace

std::unique_ptr<Project> makeProject(const Shape &shape, int threads) {
  return std::make_unique<CompiledProject>(shape, threads);
}

} // namespace neuroshard::bench
