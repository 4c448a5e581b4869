//===- ModelFile.h - Parts of trained model files ---------------*- C++ -*-===//
///
/// \file
/// Checks, reads and writes the parts that the files of compute models,
/// communication models and placement policies have in common: layers, feature
/// scales, lists of feature names, the card.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_COSTMODEL_LAYERS_MODELFILE_H
#define NEUROSHARD_LIB_COSTMODEL_LAYERS_MODELFILE_H

#include "neuroshard/CostModel/DenseLayer.h"
#include "neuroshard/CostModel/FeatureScale.h"
#include "neuroshard/CostModel/Safetensors.h"
#include "neuroshard/Planner/PredictionInterval.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// Name of a layer of an ensemble's member: "member1.head.0".
std::string layerName(size_t member, const char *part, size_t layer);

/// "'text'".
std::string inQuotes(std::string_view text);

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Numbers in [-1000, 1000], one per feature; std >= 1e-9; min <= max.
void checkScale(const std::string &name, const FeatureScale &scale,
                std::span<const std::string_view> features,
                Diagnostics &errors);

/// `in` inputs; at most kMaxLayerWidth outputs; numbers of that count, in
/// [-100, 100].
void checkLayer(const std::string &name, const DenseLayer &layer, int64_t in,
                Diagnostics &errors);

/// Cards are JSON objects.
void checkCard(const std::string &card, Diagnostics &errors);

/// Not known, or 0 < low <= high, both finite.
void checkInterval(const PredictionInterval &interval, Diagnostics &errors);

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Reads a model file up to its first error: from then on every function does
/// nothing and returns an empty value.
class ModelFileReader {
public:
  explicit ModelFileReader(const TensorFile &file) : file(file) {}

  bool ok() const { return errors.empty(); }
  void error(std::string where, std::string message);

  /// Metadata: its text; "true" or "false"; a certain text; a list of names.
  std::string text(const char *key);
  bool flag(const char *key);
  void expect(const char *key, std::string_view wanted);
  void expectNames(const char *key, std::span<const std::string_view> wanted);
  /// Not known in files without one.
  PredictionInterval interval();

  std::vector<float> numbers(const std::string &name,
                             const std::vector<int64_t> &shape);
  FeatureScale scale(const std::string &name, int64_t features);
  DenseLayer layer(const std::string &name);
  bool hasLayer(const std::string &name) const;
  /// More tensors than a model has are those of another kind of model.
  void expectTensors(size_t count);

  /// What was read from a file of `tensors` tensors, if check() accepts it.
  template <typename Parameters>
  Expected<Parameters> finish(Parameters parameters, size_t tensors) {
    expectTensors(tensors);
    if (ok())
      errors = check(parameters);
    if (!ok())
      return tl::unexpected(errors);
    return parameters;
  }

  Diagnostics errors;

private:
  const TensorFile &file;
};

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// A JSON list.
std::string textOfNames(std::span<const std::string_view> names);

/// Adds nothing if it is not known.
void addInterval(const PredictionInterval &interval, TensorFile &file);

void addScale(const std::string &name, const FeatureScale &scale,
              TensorFile &file);
void addLayer(const std::string &name, const DenseLayer &layer,
              TensorFile &file);

//===----------------------------------------------------------------------===//
// Ensembles
//===----------------------------------------------------------------------===//

/// The layers of an ensemble's members: a first part, whose name depends on the
/// model, and Member::head.
template <typename Member, size_t N> struct MemberLayers {
  const char *part;
  std::array<DenseLayer, N> Member::*first;

  /// Calls visit(name, layer) for every layer of a member.
  template <typename AnyMember, typename Visit>
  void forEach(size_t index, AnyMember &member, Visit visit) const {
    for (size_t i = 0; i < N; ++i)
      visit(layerName(index, part, i), (member.*first)[i]);
    for (size_t i = 0; i < member.head.size(); ++i)
      visit(layerName(index, "head", i), member.head[i]);
  }

  /// As many members as the file has, at least one.
  std::vector<Member> read(ModelFileReader &reader) const {
    std::vector<Member> members;
    for (size_t i = 0; i < kMaxMembers && reader.ok(); ++i) {
      if (i > 0 && !reader.hasLayer(layerName(i, part, 0)))
        break;
      forEach(i, members.emplace_back(),
              [&](const std::string &name, DenseLayer &layer) {
                layer = reader.layer(name);
              });
    }
    return members;
  }

  void add(const std::vector<Member> &members, TensorFile &file) const {
    for (size_t i = 0; i < members.size(); ++i)
      forEach(i, members[i],
              [&](const std::string &name, const DenseLayer &layer) {
                addLayer(name, layer, file);
              });
  }
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_LAYERS_MODELFILE_H
