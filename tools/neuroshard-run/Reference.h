//===- Reference.h - The unsharded program of an artifact -------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_REFERENCE_H
#define NEUROSHARD_TOOLS_RUN_REFERENCE_H

#include "Call.h"
#include "Signature.h"
#include "Tensor.h"

#include "neuroshard/Model/Types.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <optional>
#include <string>

namespace neuroshard::run {

/// How far two lists of results are apart.
struct Difference {
  double largest = 0;      ///< largest |a - b|.
  double largestValue = 0; ///< largest |b|.
  int64_t differing = 0;   ///< elements with other bits.
  int64_t elements = 0;
};

/// The unsharded program of an artifact with a copy of the world's tables.
/// Throws std::runtime_error if something cannot be read.
class Reference {
public:
  /// Nothing if the artifact has none. `signature` must outlive it.
  static std::optional<Reference> open(const std::string &directory,
                                       const Signature &signature,
                                       nsrt_world *world);

  /// Results of a function on the whole batch.
  std::vector<Tensor> run(const std::string &name,
                          const std::vector<Value> &arguments);

  /// One training step: changes the tables. `context` are the ids.
  void update(const Value &context, const Value &gradients, float learningRate,
              int64_t step);

  /// The f32 tables' largest difference from the world's.
  Difference compareTables(nsrt_world *world) const;

private:
  nsrt_host_function find(const std::string &name) const;
  /// Adds the argument if it is the memory of a table.
  bool addTable(const ValueSpec &spec, Call &call);

  const Signature *signature = nullptr;
  void *library = nullptr;
  std::vector<Tensor> tables;
  std::vector<std::vector<Tensor>> states;
};

/// Compares f32 results. Throws std::runtime_error if shapes differ.
Difference compare(const std::vector<Tensor> &actual,
                   const std::vector<Tensor> &expected);

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_REFERENCE_H
