//===- Measure.cpp - Measures and checks contenders -----------------------===//
//
// The machine drifts, so all contenders run in every round. Each begins its
// turn with a run that is not timed: its threads and memory are then as in a
// loop of its own, and threads of another that still spin have gone to sleep.
//
//===----------------------------------------------------------------------===//

#include "Measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

namespace neuroshard::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// Longer than OpenMP's threads wait for work before they sleep.
constexpr std::chrono::milliseconds kPause(10);

double cpuMs() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) * 1e-6;
}

/// Least bytes of a run: ids and offsets once, rows, results. A training run
/// also reads the gradient once, reads and writes each distinct row of weights
/// and state, and reads and writes the ids to sort them.
double logicalBytes(const Shape &shape, const std::vector<IdSet> &sets) {
  auto ids = static_cast<double>(shape.numIds());
  auto results =
      static_cast<double>(shape.tables * shape.batch * shape.dim * 4);
  auto row = static_cast<double>(shape.rowBytes());
  auto bags = static_cast<double>(shape.tables * shape.batch + 1);
  double idBytes = shape.weighted ? 12 : 8;
  double bytes = ids * (row + idBytes) + results + bags * 8;
  if (!shape.isTraining())
    return bytes;
  double unique = 0;
  for (const IdSet &set : sets)
    unique += static_cast<double>(set.uniqueRows);
  unique /= static_cast<double>(sets.size());
  double state = 0;
  for (int64_t width : shape.stateWidths())
    state += static_cast<double>(width * 4);
  return bytes + results + 2 * unique * (row + state) + 2 * 8 * ids;
}

/// Throws if the tables do not fit into free memory, before the system kills
/// processes.
void checkMemory(const Shape &shape) {
  std::ifstream file("/proc/meminfo");
  int64_t available = 0;
  for (std::string word; file >> word;)
    if (word == "MemAvailable:" && file >> available)
      break;
  auto tables = static_cast<double>(shape.tables * shape.tableBytes());
  // Each of three contenders has states of its own.
  auto elementStates = std::ranges::count(shape.stateWidths(), shape.dim);
  double copies =
      (shape.isTraining() ? 4 : 3) + 3 * static_cast<double>(elementStates);
  double needed = tables * copies * 1.1 + 1e9;
  if (available > 0 && needed > static_cast<double>(available) * 1024)
    throw std::runtime_error(
        shape.name + ": needs " + std::to_string(std::lround(needed / 1e9)) +
        " GB of memory, " +
        std::to_string(std::lround(static_cast<double>(available) / 1e6)) +
        " GB are free; choose other shapes by --shapes");
}

class Measurement {
public:
  Measurement(const Shape &shape, const MeasureOptions &options)
      : shape(shape), options(options), sets(makeIdSets(shape, options.seed)) {}

  ShapeFigures run() {
    checkMemory(shape);
    addContenders();
    compare();
    takeTurns();
    ShapeFigures result{shape, logicalBytes(shape, sets), {}};
    for (Entry &entry : entries)
      result.contenders.push_back(std::move(entry.figures));
    return result;
  }

private:
  struct Entry {
    Figures figures;
    std::unique_ptr<Contender> contender;
    size_t nextSet = 0;
  };

  template <typename Make> void add(const char *name, const Make &make) {
    Entry &entry = entries.emplace_back();
    entry.figures.name = name;
    entry.nextSet = 7 * entries.size();
    try {
      entry.contender = make();
      if (shape.isTraining())
        entry.contender->setGradient(gradient);
      for (const IdSet &set : sets)
        entry.contender->prepare(set);
      entry.contender->run(sets[0]);
    } catch (const std::exception &error) {
      // LibTorch appends a stack trace to the first line.
      std::string text = error.what();
      entry.figures.notRun = text.substr(0, text.find('\n'));
      entry.contender.reset();
    }
  }

  void addContenders() {
    if (shape.isTraining())
      makeGradient();
    std::unique_ptr<Project> project = makeProject(shape, options.threads);
    TableValues values = project->tableValues();
    std::unique_ptr<Contender> gather, sequential;
    std::string torchMissing;
    // Before the project's first run, which may change its tables.
    try {
      torch = makeTorchSide(shape, options.threads, values);
    } catch (const std::exception &error) {
      torchMissing = error.what();
    }
    add(kProject, [&] { return std::move(project); });
    if (!entries[0].contender)
      throw std::runtime_error(entries[0].figures.notRun);
    auto needTorch = [&] {
      if (!torch)
        throw std::runtime_error(torchMissing);
    };
    if (!shape.isTraining()) {
      add(kEmbeddingBag, [&] {
        needTorch();
        return torch->makeEmbeddingBag();
      });
    }
    add(kFbgemm, [&] {
      needTorch();
      if (options.fbgemm.empty())
        throw std::runtime_error(
            "there is no package fbgemm_gpu beside PyTorch; --fbgemm names "
            "its folder");
      return torch->makeFbgemm(options.fbgemm);
    });
    if (shape.isTraining()) {
      add(kUpdateLimit,
          [&] { return makeUpdateLimit(shape, options.threads, values); });
    } else {
      add(kGather, [&] { return makeGather(shape, options.threads, values); });
      add(kSequential,
          [&] { return makeSequentialRead(shape, options.threads); });
    }
  }

  void makeGradient() {
    std::mt19937_64 random(options.seed + 1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    gradient.resize(
        static_cast<size_t>(shape.tables * shape.batch * shape.dim));
    for (float &value : gradient)
      value = uniform(random);
  }

  /// Every contender has run once, on the same ids.
  void compare() {
    for (size_t i = 1; i < entries.size(); ++i) {
      Entry &entry = entries[i];
      if (!entry.contender)
        continue;
      entry.figures.tolerance = shape.element == "f16"    ? 0x1p-9
                                : shape.element == "bf16" ? 0x1p-6
                                : shape.isTraining()      ? 1e-5
                                                          : 2e-6;
      Largest largest;
      bool comparable = true;
      for (int64_t t = 0; comparable && t < shape.tables; ++t)
        comparable = compareTable(*entry.contender, t, largest);
      if (comparable)
        entry.figures.difference =
            largest.difference / std::max(largest.value, 1e-30);
    }
    for (Entry &entry : entries)
      if (entry.contender)
        entry.contender->drop();
  }

  struct Largest {
    double value = 0, difference = 0;
    void add(float mine, float other) {
      value = std::max(value, std::abs(static_cast<double>(mine)));
      double apart = std::abs(static_cast<double>(mine) - other);
      // A NaN on one side is as different as can be.
      difference = apart <= difference ? difference
                   : apart > 0         ? apart
                                       : HUGE_VAL;
    }
  };

  bool compareTable(Contender &other, int64_t table, Largest &largest) {
    RowsView mine = entries[0].contender->result(table);
    RowsView theirs = other.result(table);
    if (!theirs.first)
      return false;
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t c = 0; c < shape.dim; ++c)
        largest.add(mine.first[b * mine.stride + c],
                    theirs.first[b * theirs.stride + c]);
    if (!shape.isTraining())
      return true;
    auto size = static_cast<size_t>(shape.rows * shape.dim);
    std::vector<float> myRows(size), theirRows(size);
    entries[0].contender->readTable(table, myRows.data());
    other.readTable(table, theirRows.data());
    for (size_t i = 0; i < size; ++i)
      largest.add(myRows[i], theirRows[i]);
    return true;
  }

  const IdSet &nextSet(Entry &entry) {
    return sets[entry.nextSet++ % sets.size()];
  }

  void takeTurn(Entry &entry) {
    std::this_thread::sleep_for(kPause);
    entry.contender->run(nextSet(entry));
    entry.contender->drop();
    const IdSet &set = nextSet(entry);
    double cpu = cpuMs();
    auto begin = Clock::now();
    entry.contender->run(set);
    std::chrono::duration<double, std::milli> wall = Clock::now() - begin;
    entry.figures.wallMs.push_back(wall.count());
    entry.figures.cpuMs.push_back(cpuMs() - cpu);
    entry.contender->drop();
  }

  void takeTurns() {
    auto begin = Clock::now();
    for (int round = 0; round < options.rounds; ++round) {
      std::chrono::duration<double> passed = Clock::now() - begin;
      if (round >= 3 && passed.count() > options.seconds)
        return;
      for (size_t i = 0; i < entries.size(); ++i)
        if (Entry &entry =
                entries[(i + static_cast<size_t>(round)) % entries.size()];
            entry.contender)
          takeTurn(entry);
    }
  }

  const Shape &shape;
  const MeasureOptions &options;
  std::vector<IdSet> sets;
  std::vector<float> gradient;
  std::unique_ptr<TorchSide> torch;
  std::vector<Entry> entries;
};

/// The library with LibTorch's contenders: in ../lib of this program.
void *openTorchSide() {
  static void *const library = [] {
    std::filesystem::path self =
        std::filesystem::read_symlink("/proc/self/exe");
    std::filesystem::path path = self.parent_path().parent_path() / "lib" /
                                 "libneuroshard_bench_torch.so";
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  if (!library)
    throw std::runtime_error("built without PyTorch");
  return library;
}

} // namespace

std::unique_ptr<TorchSide> makeTorchSide(const Shape &shape, int threads,
                                         const TableValues &values) {
  auto *make =
      reinterpret_cast<MakeTorchSide *>(dlsym(openTorchSide(), kMakeTorchSide));
  return std::unique_ptr<TorchSide>(make(shape, threads, values));
}

std::string findFbgemm() {
  std::filesystem::path torch;
  try {
    torch = reinterpret_cast<FindTorch *>(dlsym(openTorchSide(), kFindTorch))();
  } catch (const std::exception &) {
    return "";
  }
  std::filesystem::path folder = torch.parent_path() / "fbgemm_gpu";
  return std::filesystem::exists(folder / "fbgemm.so") ? folder.string() : "";
}

const Figures *ShapeFigures::find(const std::string &name) const {
  for (const Figures &figures : contenders)
    if (figures.name == name)
      return &figures;
  return nullptr;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  double place = q * static_cast<double>(values.size() - 1);
  auto low = static_cast<size_t>(place);
  size_t high = std::min(low + 1, values.size() - 1);
  double part = place - static_cast<double>(low);
  return values[low] * (1 - part) + values[high] * part;
}

ShapeFigures measureShape(const Shape &shape, const MeasureOptions &options) {
  return Measurement(shape, options).run();
}

} // namespace neuroshard::bench
