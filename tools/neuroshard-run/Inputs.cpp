//===- Inputs.cpp - Random batches and weights ----------------------------===//

#include "Inputs.h"

#include "neuroshard/Serialization/Json.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace neuroshard::run {

namespace {

bool hasBatch(const ValueSpec &spec) {
  return !spec.shape.empty() && spec.shape[0] < 0;
}

} // namespace

void readMeans(const std::string &workload, const Signature &signature,
               PoolingFactors &pooling) {
  Expected<ShardingProblem> problem = readWorkload(workload);
  if (!problem)
    throw std::runtime_error(toString(problem.error()));
  for (const Feature &feature : problem->features)
    pooling.meanOfFeature[feature.name] =
        feature.meanPooling * feature.presence;
  std::string own;
  for (const InputSpec &input : signature.inputs)
    for (const std::string &feature : input.features) {
      if (pooling.meanOfFeature.contains(feature))
        return;
      own += (own.empty() ? "" : ", ") + feature;
    }
  throw std::runtime_error("'" + workload +
                           "' lists none of the artifact's features: " + own);
}

void fillUniform(Tensor &tensor, float low, float high,
                 std::mt19937_64 &random) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::generate_n(tensor.as<float>(), tensor.elements(),
                  [&] { return uniform(random); });
}

namespace {

/// A tensor type as MLIR writes it.
std::string typeText(const ValueSpec &spec) {
  std::string text = "tensor<";
  for (int64_t size : spec.shape)
    text += (size < 0 ? "?" : std::to_string(size)) + "x";
  return text + spec.type + ">";
}

/// where: what the tensor is, for errors.
Tensor randomTensor(const ValueSpec &spec, int64_t batch,
                    const std::string &where, std::mt19937_64 &random) {
  std::vector<int64_t> shape = spec.shape;
  bool perSample = hasBatch(spec);
  if (perSample)
    shape[0] = batch;
  if (spec.type != "f32" ||
      std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; }))
    throw std::runtime_error(
        where + " is a " + typeText(spec) +
        ": values can be made up for f32 tensors of which the first size alone "
        "is unknown, and for jagged ids; ids of a raised module become jagged "
        "by neuroshard-compile --jagged-arguments, some only with "
        "--assume-valid-inputs");
  Tensor tensor("f32", shape);
  float bound = 1 / std::sqrt(static_cast<float>(
                        std::max<int64_t>(1, shape.empty() ? 1 : shape[0])));
  perSample ? fillUniform(tensor, 0, 1, random)
            : fillUniform(tensor, -bound, bound, random);
  return tensor;
}

std::vector<int64_t> randomLengths(double mean, bool poisson, int64_t batch,
                                   std::mt19937_64 &random) {
  std::vector<int64_t> lengths(batch, std::llround(mean));
  std::poisson_distribution<int64_t> around(mean);
  if (poisson && mean > 0)
    std::generate(lengths.begin(), lengths.end(),
                  [&] { return around(random); });
  return lengths;
}

void storeId(Tensor &ids, int64_t position, int64_t id) {
  if (ids.type == "i64")
    ids.as<int64_t>()[position] = id;
  else
    ids.as<int32_t>()[position] = static_cast<int32_t>(id);
}

Value randomJagged(const InputSpec &input, int64_t batch,
                   const PoolingFactors &pooling, std::mt19937_64 &random) {
  int64_t features = static_cast<int64_t>(input.features.size());
  Tensor offsets("i64", {features * batch + 1});
  int64_t *offset = offsets.as<int64_t>();
  for (int64_t f = 0; f < features; ++f) {
    auto known = pooling.meanOfFeature.find(input.features[f]);
    double mean = known == pooling.meanOfFeature.end() ? pooling.otherwise
                                                       : known->second;
    for (int64_t length : randomLengths(mean, pooling.poisson, batch, random)) {
      offset[1] = offset[0] + length;
      ++offset;
    }
  }
  Tensor ids(input.idType, {*offset});
  const int64_t *begin = offsets.as<int64_t>();
  for (int64_t f = 0; f < features; ++f) {
    std::uniform_int_distribution<int64_t> row(0, input.rows[f] - 1);
    for (int64_t i = begin[f * batch]; i < begin[(f + 1) * batch]; ++i)
      storeId(ids, i, row(random));
  }
  Value value = {std::move(ids), std::move(offsets)};
  if (input.weighted) {
    value.emplace_back("f32", value[0].shape);
    fillUniform(value[2], 0, 1, random);
  }
  return value;
}

} // namespace

Tensor sliceRows(const Tensor &tensor, int64_t begin, int64_t end) {
  std::vector<int64_t> shape = tensor.shape;
  int64_t rowBytes =
      shape[0] ? static_cast<int64_t>(tensor.bytes.size()) / shape[0] : 0;
  shape[0] = end - begin;
  Tensor part(tensor.type, shape);
  if (!part.bytes.empty())
    std::memcpy(part.bytes.data(), tensor.bytes.data() + begin * rowBytes,
                part.bytes.size());
  return part;
}

namespace {

void append(Tensor &to, const Tensor &part) {
  to.shape[0] += part.shape[0];
  to.bytes.insert(to.bytes.end(), part.bytes.begin(), part.bytes.end());
}

/// Samples [begin, end) of every feature.
Value sliceJagged(const Value &value, int64_t features, int64_t batch,
                  int64_t begin, int64_t end) {
  const int64_t *offsets = value[1].as<int64_t>();
  Value part = {Tensor(value[0].type, {0}),
                Tensor("i64", {features * (end - begin) + 1})};
  if (value.size() == 3)
    part.emplace_back("f32", std::vector<int64_t>{0});
  int64_t *local = part[1].as<int64_t>();
  for (int64_t f = 0; f < features; ++f) {
    const int64_t *bags = offsets + f * batch;
    append(part[0], sliceRows(value[0], bags[begin], bags[end]));
    if (value.size() == 3)
      append(part[2], sliceRows(value[2], bags[begin], bags[end]));
    for (int64_t bag = begin; bag < end; ++bag, ++local)
      local[1] = local[0] + bags[bag + 1] - bags[bag];
  }
  return part;
}

} // namespace

/// Bytes of an argument for the whole batch.
static double bytesOfInput(const ValueSpec &spec, const Signature &signature,
                           int64_t batch, const PoolingFactors &pooling) {
  auto samples = static_cast<double>(batch);
  if (spec.kind == ValueKind::Tensor)
    return std::accumulate(spec.shape.begin(), spec.shape.end(), 4.0,
                           [&](double bytes, int64_t size) {
                             return bytes * (size < 0 ? samples : size);
                           });
  double bytes = 0;
  if (spec.kind == ValueKind::Jagged && spec.exchange)
    for (const std::string &name :
         signature.inputs.at(*spec.exchange).features) {
      auto known = pooling.meanOfFeature.find(name);
      double mean = known == pooling.meanOfFeature.end() ? pooling.otherwise
                                                         : known->second;
      bytes += samples * (8 + mean * (spec.type == "i64" ? 8 : 4) +
                          mean * (spec.weighted ? 4 : 0));
    }
  return bytes;
}

/// The inputs are there twice: of the whole batch and of all devices. Compares
/// with the machine's memory, as the operating system would end the process.
static void checkMemory(const Signature &signature,
                        const FunctionSpec &function, int64_t batch,
                        const PoolingFactors &pooling) {
  double needed = 0;
  for (const ValueSpec &spec : function.arguments)
    needed += 2 * bytesOfInput(spec, signature, batch, pooling);
  double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (needed <= machine)
    return;
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << "the inputs of a batch of "
       << batch << " samples need " << needed / 0x1p30
       << " GiB, but this machine has " << machine / 0x1p30
       << " GiB of memory; choose a smaller --batch or fewer ids per sample "
          "(--pooling, --workload)";
  throw std::runtime_error(text.str());
}

std::vector<Value> randomInputs(const Signature &signature,
                                const FunctionSpec &function, int64_t batch,
                                const PoolingFactors &pooling,
                                std::mt19937_64 &random) {
  checkMemory(signature, function, batch, pooling);
  std::vector<Value> values;
  for (const ValueSpec &spec : function.arguments) {
    switch (spec.kind) {
    case ValueKind::Device:
      break;
    case ValueKind::Tensor:
      values.push_back(
          {randomTensor(spec, batch,
                        "argument " + std::to_string(values.size()) + " of '" +
                            function.name + "'",
                        random)});
      break;
    case ValueKind::Jagged:
      if (!spec.exchange)
        throw std::runtime_error("cannot make up ids that no lookup reads");
      values.push_back(randomJagged(signature.inputs.at(*spec.exchange), batch,
                                    pooling, random));
      break;
    default:
      throw std::runtime_error("only functions of tensors and jagged ids can "
                               "be driven; this one takes something else");
    }
  }
  return values;
}

Value localPart(const ValueSpec &spec, const Value &value, int64_t features,
                int64_t batch, int64_t rank, int64_t devices) {
  int64_t each = batch / devices, more = batch % devices;
  int64_t begin = rank * each + std::min(rank, more);
  int64_t end = begin + each + (rank < more ? 1 : 0);
  if (spec.kind == ValueKind::Jagged)
    return sliceJagged(value, features, batch, begin, end);
  if (hasBatch(spec))
    return {sliceRows(value[0], begin, end)};
  return value;
}

} // namespace neuroshard::run
