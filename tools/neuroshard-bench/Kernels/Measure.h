//===- Measure.h - Measures and checks contenders ---------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_BENCH_KERNELS_MEASURE_H
#define NEUROSHARD_TOOLS_BENCH_KERNELS_MEASURE_H

#include "Contender.h"

#include <optional>

namespace neuroshard::bench {

/// Names of contenders, in reports.
inline constexpr const char *kProject = "neuroshard";
inline constexpr const char *kEmbeddingBag = "embedding_bag";
inline constexpr const char *kFbgemm = "fbgemm";
inline constexpr const char *kGather = "gather_limit";
inline constexpr const char *kUpdateLimit = "update_limit";
inline constexpr const char *kSequential = "sequential_read";

struct MeasureOptions {
  int threads = 2;
  int rounds = 25;
  double seconds = 30; ///< of a shape, at most (after the third round).
  uint64_t seed = 1;
  std::string fbgemm; ///< folder; empty: none.
};

/// One contender's figures.
struct Figures {
  std::string name;
  std::string notRun; ///< why; empty if it was.
  std::vector<double> wallMs, cpuMs;
  /// Largest difference from the project's values, over the largest of them;
  /// none where there is nothing to compare.
  std::optional<double> difference;
  double tolerance = 0;

  bool ran() const { return notRun.empty(); }
  bool agrees() const { return !difference || *difference <= tolerance; }
};

struct ShapeFigures {
  Shape shape;
  /// Bytes that a run must read and write, by docs/kernels.md.
  double bytes = 0;
  std::vector<Figures> contenders; ///< the project's first.

  const Figures *find(const std::string &name) const;
};

/// The q-quantile.
double quantile(std::vector<double> values, double q);

/// Runs all contenders of a shape in turns. Throws if the project's cannot be
/// run.
ShapeFigures measureShape(const Shape &shape, const MeasureOptions &options);

/// The figures as JSON text and as tables for people.
std::string toJson(const std::vector<ShapeFigures> &shapes,
                   const MeasureOptions &options);
void printShape(const ShapeFigures &figures);
/// Returns the number of aims missed.
int printAims(const std::vector<ShapeFigures> &shapes);

} // namespace neuroshard::bench

#endif // NEUROSHARD_TOOLS_BENCH_KERNELS_MEASURE_H
