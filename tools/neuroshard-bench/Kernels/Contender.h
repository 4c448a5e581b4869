//===- Contender.h - Interface of compared kernels --------------*- C++ -*-===//
///
/// \file
/// Free of torch and of the compiler: the contenders that need LibTorch are in
/// a library of their own, loaded when it is there.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_BENCH_KERNELS_CONTENDER_H
#define NEUROSHARD_TOOLS_BENCH_KERNELS_CONTENDER_H

#include "neuroshard/Model/Optimizer.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard::bench {

/// Equal tables with one pooled lookup each.
struct Shape {
  std::string name;
  int64_t tables = 1;
  int64_t rows = 1; ///< of each table.
  int64_t dim = 1;
  int64_t batch = 1;
  int64_t pooling = 1;         ///< ids of every bag.
  double zipf = 0;             ///< exponent of the ids' popularity; 0: uniform.
  std::string element = "f32"; ///< of the tables: f32, f16 or bf16.
  bool mean = false;
  bool weighted = false;
  std::string optimizer; ///< forward + update; empty: forward alone.

  bool isTraining() const { return !optimizer.empty(); }
  int64_t elementBytes() const { return element == "f32" ? 4 : 2; }
  int64_t rowBytes() const { return dim * elementBytes(); }
  int64_t tableBytes() const { return rows * rowBytes(); }
  /// Floats in a row of each state of the optimizer.
  std::vector<int64_t> stateWidths() const {
    auto known = std::ranges::find(kOptimizers, std::string_view(optimizer),
                                   &OptimizerProperties::name);
    if (known == kOptimizers.end())
      return {};
    std::vector<int64_t> widths(static_cast<size_t>(known->states.perElement),
                                dim);
    widths.insert(widths.end(), static_cast<size_t>(known->states.perRow), 1);
    return widths;
  }
  int64_t numIds() const { return tables * batch * pooling; }
};

/// The hyperparameters of every contender's optimizer.
inline constexpr double kLearningRate = 0.0625;
inline constexpr double kEps = 1e-8;
inline constexpr double kBeta1 = 0.9;
inline constexpr double kBeta2 = 0.999;

/// The ids of a batch: those of table 0, bag by bag, then those of table 1, ...
struct IdSet {
  std::vector<int64_t> ids;
  std::vector<int64_t> offsets; ///< [tables * batch + 1].
  std::vector<float> weights;   ///< one for each id if weighted.
  int64_t uniqueRows = 0;       ///< distinct rows of all tables.
};

/// Rows of f32 values.
struct RowsView {
  const float *first = nullptr;
  int64_t stride = 0; ///< floats from row to row.
};

/// An implementation that looks up all tables of a shape, and trains them if
/// the shape has an optimizer. Throws std::exception for shapes it does not
/// support.
class Contender {
public:
  virtual ~Contender() = default;
  /// The gradient of the results that every training run applies, [tables,
  /// batch, dim]. It must outlive the contender.
  virtual void setGradient(const std::vector<float> &) {}
  /// Called for each set of ids before it is run. Not timed.
  virtual void prepare(const IdSet &) {}
  /// Looks up `ids` and, in training, updates the tables. Timed.
  virtual void run(const IdSet &ids) = 0;
  /// Result of the last run for a table, [batch, dim], valid until the next
  /// run() or drop(). Null if the contender gives no results.
  virtual RowsView result(int64_t) { return {}; }
  /// Frees the results of the last run. Not timed.
  virtual void drop() {}
  /// The table's values as f32, [rows, dim].
  virtual void readTable(int64_t, float *) {}
};

/// Writes a table's first values, of the shape's element type, [rows, dim].
using TableValues = std::function<void(int64_t table, void *out)>;

/// This project: the model compiled by neuroshard-compile for one device, run
/// through the runtime's C interface.
class Project : public Contender {
public:
  /// The first values of its tables, which all contenders start from.
  virtual TableValues tableValues() = 0;
};
std::unique_ptr<Project> makeProject(const Shape &shape, int threads);

/// The machine's limit for random rows: a loop written by hand over rows of as
/// many bytes, on huge pages, with prefetches, without checks of ids. Gives
/// results only for f32 sums without weights.
std::unique_ptr<Contender> makeGather(const Shape &shape, int threads,
                                      const TableValues &values);
/// The same loop, then one that reads and writes each distinct row and its
/// state once, in order, in arrays of its own. Gives no results.
std::unique_ptr<Contender> makeUpdateLimit(const Shape &shape, int threads,
                                           const TableValues &values);
/// The machine's limit for rows in order: reads as many bytes of a table.
std::unique_ptr<Contender> makeSequentialRead(const Shape &shape, int threads);

/// The contenders made of LibTorch's operators, for one shape.
class TorchSide {
public:
  virtual ~TorchSide() = default;
  /// One at::embedding_bag per table.
  virtual std::unique_ptr<Contender> makeEmbeddingBag() = 0;
  /// FBGEMM's table-batched operator for the CPU, from the libraries in
  /// `folder`. Shares the memory of its tables with the embedding bags.
  virtual std::unique_ptr<Contender> makeFbgemm(const std::string &folder) = 0;
};
/// Throws std::exception if LibTorch's contenders cannot be loaded.
std::unique_ptr<TorchSide> makeTorchSide(const Shape &shape, int threads,
                                         const TableValues &values);
/// The folder of the package fbgemm_gpu beside PyTorch; "" if there is none.
std::string findFbgemm();

/// Functions that the library of LibTorch's contenders exports.
using MakeTorchSide = TorchSide *(const Shape &, int threads,
                                  const TableValues &);
inline constexpr const char *kMakeTorchSide = "neuroshard_bench_torch_side";
using FindTorch = const char *();
inline constexpr const char *kFindTorch = "neuroshard_bench_torch_folder";

/// Enough sets of ids that they read more bytes than caches hold.
std::vector<IdSet> makeIdSets(const Shape &shape, uint64_t seed);

/// The shapes that aims are stated for, and others for information.
std::vector<Shape> usualShapes();

} // namespace neuroshard::bench

#endif // NEUROSHARD_TOOLS_BENCH_KERNELS_CONTENDER_H
