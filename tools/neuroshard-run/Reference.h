//===- Reference.h - The unsharded program of an artifact -------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_RUN_REFERENCE_H
#define NEUROSHARD_TOOLS_RUN_REFERENCE_H

#include "Call.h"
#include "Difference.h"
#include "Signature.h"
#include "Tensor.h"

#include "neuroshard/Runtime/DriverABI.h"

#include <optional>
#include <string>

namespace neuroshard::run {

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

  /// How far the world's tables are from these.
  Difference compareTables(nsrt_world *world, const Tolerance &tolerance) const;

private:
  nsrt_host_function find(const std::string &name) const;
  /// Adds the argument if it is the memory of a table.
  bool addTable(const ValueSpec &spec, Call &call);

  const Signature *signature = nullptr;
  void *library = nullptr;
  std::vector<Tensor> tables;
  std::vector<std::vector<Tensor>> states;
};

} // namespace neuroshard::run

#endif // NEUROSHARD_TOOLS_RUN_REFERENCE_H
