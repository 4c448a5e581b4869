//===- Attributes.cpp - Attributes of the dialect -------------------------===//

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/Limits.h"
#include "neuroshard/Model/Table.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace neuroshard::ir;

#define GET_ATTRDEF_CLASSES
#include "neuroshard/Dialect/NeuroShardAttributes.cpp.inc"

void NeuroShardDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "neuroshard/Dialect/NeuroShardAttributes.cpp.inc"
      >();
}

namespace {

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

FloatAttr f64(MLIRContext *context, double value) {
  return FloatAttr::get(Float64Type::get(context), value);
}

void printNumber(AsmPrinter &printer, FloatAttr value) {
  printer.printFloat(value.getValue());
}

/// Reads `key = value` pairs separated by commas up to `>`, each key at most
/// once. `parseValue(key)` reads one value, or returns nullopt for a key it
/// does not know. `first` says that no comma precedes the first pair.
ParseResult
parsePairs(AsmParser &parser, llvm::StringRef known, bool first,
           llvm::function_ref<std::optional<ParseResult>(llvm::StringRef)>
               parseValue) {
  llvm::SmallVector<std::string> seen;
  while (failed(parser.parseOptionalGreater())) {
    llvm::StringRef key;
    if ((!first && parser.parseComma()))
      return failure();
    first = false;
    llvm::SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key))
      return failure();
    if (llvm::is_contained(seen, key))
      return parser.emitError(loc) << "'" << key << "' given twice";
    seen.push_back(key.str());
    // A unit key has no value; its handler parses nothing.
    std::optional<ParseResult> result = parseValue(key);
    if (!result)
      return parser.emitError(loc)
             << "unknown key '" << key << "', expected one of: " << known;
    if (failed(*result))
      return failure();
  }
  return success();
}

ParseResult parseNumber(AsmParser &parser, FloatAttr &value) {
  double number;
  if (parser.parseEqual() || parser.parseFloat(number))
    return failure();
  value = f64(parser.getContext(), number);
  return success();
}

template <typename IntT>
ParseResult parseCount(AsmParser &parser, IntT &value) {
  int64_t number;
  if (parser.parseEqual() || parser.parseInteger(number))
    return failure();
  value = number;
  return success();
}

ParseResult parseNumbers(AsmParser &parser, DenseF64ArrayAttr &values) {
  SmallVector<double> numbers;
  auto parseOne = [&]() { return parser.parseFloat(numbers.emplace_back()); };
  if (parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  values = DenseF64ArrayAttr::get(parser.getContext(), numbers);
  return success();
}

void printNumbers(AsmPrinter &printer, DenseF64ArrayAttr values) {
  printer << "[";
  llvm::interleaveComma(values.asArrayRef(), printer, [&](double value) {
    printer.printFloat(llvm::APFloat(value));
  });
  printer << "]";
}

LogicalResult checkNonNegative(EmitError emitError, llvm::StringRef name,
                               FloatAttr value) {
  double number = value.getValueAsDouble();
  if (std::isfinite(number) && number >= 0)
    return success();
  return emitError() << "'" << name << "' must be finite and not negative";
}

} // namespace

//===----------------------------------------------------------------------===//
// OptimizerAttr
//===----------------------------------------------------------------------===//

OptimizerAttr OptimizerAttr::get(MLIRContext *context,
                                 const neuroshard::Optimizer &optimizer) {
  return get(context, optimizer.kind, f64(context, optimizer.eps),
             f64(context, optimizer.beta1), f64(context, optimizer.beta2),
             f64(context, optimizer.initialAccumulator),
             f64(context, optimizer.weightDecay));
}

neuroshard::Optimizer OptimizerAttr::getOptimizer() const {
  return {.kind = getKind(),
          .eps = getEps().getValueAsDouble(),
          .beta1 = getBeta1().getValueAsDouble(),
          .beta2 = getBeta2().getValueAsDouble(),
          .initialAccumulator = getInitialAccumulator().getValueAsDouble(),
          .weightDecay = getWeightDecay().getValueAsDouble()};
}

LogicalResult OptimizerAttr::verify(EmitError emitError,
                                    neuroshard::OptimizerKind, FloatAttr eps,
                                    FloatAttr beta1, FloatAttr beta2,
                                    FloatAttr initialAccumulator,
                                    FloatAttr weightDecay) {
  if (failed(checkNonNegative(emitError, "eps", eps)) ||
      failed(checkNonNegative(emitError, "initial_accumulator",
                              initialAccumulator)) ||
      failed(checkNonNegative(emitError, "weight_decay", weightDecay)))
    return failure();
  for (auto [name, beta] : {std::pair("beta1", beta1), {"beta2", beta2}}) {
    double value = beta.getValueAsDouble();
    if (!(value >= 0 && value < 1))
      return emitError() << "'" << name << "' must be in [0, 1)";
  }
  return success();
}

static void emitUnknownOptimizer(InFlightDiagnostic error,
                                 llvm::StringRef name) {
  using Kind = neuroshard::OptimizerKind;
  error << "unknown optimizer '" << name << "', expected one of: ";
  llvm::interleaveComma(
      ArrayRef{Kind::SGD, Kind::Adagrad, Kind::RowWiseAdagrad, Kind::Adam},
      error, [&](Kind kind) { error << stringifyOptimizerKind(kind); });
}

Attribute OptimizerAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  if (parser.parseLess())
    return {};
  llvm::SMLoc loc = parser.getCurrentLocation();
  llvm::StringRef name;
  if (parser.parseKeyword(&name))
    return {};
  std::optional kind = neuroshard::symbolizeOptimizerKind(name);
  if (!kind) {
    emitUnknownOptimizer(parser.emitError(loc), name);
    return {};
  }
  OptimizerAttr defaults = get(context, {.kind = *kind});
  FloatAttr eps = defaults.getEps(), beta1 = defaults.getBeta1(),
            beta2 = defaults.getBeta2(),
            accumulator = defaults.getInitialAccumulator(),
            decay = defaults.getWeightDecay();
  auto parseValue = [&](llvm::StringRef key) -> std::optional<ParseResult> {
    if (key == "eps")
      return parseNumber(parser, eps);
    if (key == "beta1")
      return parseNumber(parser, beta1);
    if (key == "beta2")
      return parseNumber(parser, beta2);
    if (key == "initial_accumulator")
      return parseNumber(parser, accumulator);
    if (key == "weight_decay")
      return parseNumber(parser, decay);
    return std::nullopt;
  };
  if (parsePairs(parser, "eps, beta1, beta2, initial_accumulator, weight_decay",
                 /*first=*/false, parseValue))
    return {};
  return parser.getChecked<OptimizerAttr>(loc, context, *kind, eps, beta1,
                                          beta2, accumulator, decay);
}

void OptimizerAttr::print(AsmPrinter &printer) const {
  OptimizerAttr defaults = get(getContext(), {.kind = getKind()});
  printer << "<" << stringifyOptimizerKind(getKind());
  auto printPair = [&](llvm::StringRef key, FloatAttr value,
                       FloatAttr defaultValue) {
    if (value == defaultValue)
      return;
    printer << ", " << key << " = ";
    printNumber(printer, value);
  };
  printPair("eps", getEps(), defaults.getEps());
  printPair("beta1", getBeta1(), defaults.getBeta1());
  printPair("beta2", getBeta2(), defaults.getBeta2());
  printPair("initial_accumulator", getInitialAccumulator(),
            defaults.getInitialAccumulator());
  printPair("weight_decay", getWeightDecay(), defaults.getWeightDecay());
  printer << ">";
}

//===----------------------------------------------------------------------===//
// AccessAttr
//===----------------------------------------------------------------------===//

LogicalResult AccessAttr::verify(EmitError emitError, int64_t batch,
                                 DenseF64ArrayAttr reuse,
                                 DenseF64ArrayAttr rowMass) {
  constexpr size_t kBins = kReuseBins;
  if (batch <= 0)
    return emitError() << "'batch' must be positive, got: " << batch;
  if (reuse.size() != static_cast<int64_t>(kBins))
    return emitError() << "'reuse' must have 17 shares, got: " << reuse.size();
  double sum = 0;
  for (double share : reuse.asArrayRef()) {
    if (!(share >= 0 && share <= 1))
      return emitError() << "'reuse' shares must be in [0, 1]";
    sum += share;
  }
  if (std::abs(sum - 1) > kHistogramTolerance)
    return emitError() << "'reuse' shares must sum to 1, got: " << sum;
  if (rowMass.size() % 2 != 0)
    return emitError() << "'row_mass' must be pairs (row share, lookup share)";
  for (int64_t i = 0; i < rowMass.size(); ++i) {
    double share = rowMass[i];
    if (!(share >= 0 && share <= 1))
      return emitError() << "'row_mass' shares must be in [0, 1]";
    if (i >= 2 && share < rowMass[i - 2])
      return emitError() << "'row_mass' points must ascend";
  }
  return success();
}

Attribute AccessAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  llvm::SMLoc loc = parser.getCurrentLocation();
  int64_t batch = 0;
  auto reuse = DenseF64ArrayAttr::get(context, {});
  DenseF64ArrayAttr rowMass = reuse;
  auto parseValue = [&](llvm::StringRef key) -> std::optional<ParseResult> {
    if (key == "batch")
      return parseCount(parser, batch);
    if (key == "reuse")
      return parseNumbers(parser, reuse);
    if (key == "row_mass")
      return parseNumbers(parser, rowMass);
    return std::nullopt;
  };
  if (parser.parseLess() || parsePairs(parser, "batch, reuse, row_mass",
                                       /*first=*/true, parseValue))
    return {};
  return parser.getChecked<AccessAttr>(loc, context, batch, reuse, rowMass);
}

void AccessAttr::print(AsmPrinter &printer) const {
  printer << "<batch = " << getBatch() << ", reuse = ";
  printNumbers(printer, getReuse());
  if (!getRowMass().empty()) {
    printer << ", row_mass = ";
    printNumbers(printer, getRowMass());
  }
  printer << ">";
}

//===----------------------------------------------------------------------===//
// FeatureAttr
//===----------------------------------------------------------------------===//

LogicalResult FeatureAttr::verify(EmitError emitError, FloatAttr mean,
                                  FloatAttr p99, FloatAttr presence,
                                  std::optional<int64_t> batch, bool) {
  if (failed(checkNonNegative(emitError, "mean", mean)) ||
      failed(checkNonNegative(emitError, "p99", p99)))
    return failure();
  double share = presence.getValueAsDouble();
  if (!(share >= 0 && share <= 1))
    return emitError() << "'presence' must be in [0, 1]";
  if (batch && *batch <= 0)
    return emitError() << "'batch' must be positive, got: " << *batch;
  return success();
}

Attribute FeatureAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  llvm::SMLoc loc = parser.getCurrentLocation();
  FloatAttr mean = f64(context, 1), presence = f64(context, 1);
  FloatAttr p99;
  std::optional<int64_t> batch;
  bool weightGradient = false;
  auto parseValue = [&](llvm::StringRef key) -> std::optional<ParseResult> {
    if (key == "mean")
      return parseNumber(parser, mean);
    if (key == "p99")
      return parseNumber(parser, p99);
    if (key == "presence")
      return parseNumber(parser, presence);
    if (key == "batch")
      return parseCount(parser, batch);
    if (key == "weight_gradient") {
      weightGradient = true;
      return success();
    }
    return std::nullopt;
  };
  if (parser.parseLess() ||
      parsePairs(parser, "mean, p99, presence, batch, weight_gradient",
                 /*first=*/true, parseValue))
    return {};
  if (!p99)
    p99 = f64(context, 0);
  return parser.getChecked<FeatureAttr>(loc, context, mean, p99, presence,
                                        batch, weightGradient);
}

void FeatureAttr::print(AsmPrinter &printer) const {
  printer << "<mean = ";
  printNumber(printer, getMean());
  if (getP99().getValueAsDouble() != 0) {
    printer << ", p99 = ";
    printNumber(printer, getP99());
  }
  if (getPresence().getValueAsDouble() != 1) {
    printer << ", presence = ";
    printNumber(printer, getPresence());
  }
  if (getBatch())
    printer << ", batch = " << *getBatch();
  if (getWeightGradient())
    printer << ", weight_gradient";
  printer << ">";
}

//===----------------------------------------------------------------------===//
// LookupAttr
//===----------------------------------------------------------------------===//

Attribute LookupAttr::parse(AsmParser &parser, Type) {
  StringAttr table;
  std::string feature;
  if (parser.parseLess())
    return {};
  auto pooling = dyn_cast_or_null<PoolingAttr>(PoolingAttr::parse(parser, {}));
  if (!pooling || parser.parseSymbolName(table) || parser.parseLSquare() ||
      parser.parseString(&feature) || parser.parseRSquare())
    return {};
  bool weighted = succeeded(parser.parseOptionalKeyword("weighted"));
  std::optional<int64_t> paddingIdx;
  if (succeeded(parser.parseOptionalKeyword("padding_idx")) &&
      parseCount(parser, paddingIdx))
    return {};
  if (parser.parseGreater())
    return {};
  MLIRContext *context = parser.getContext();
  return get(context, pooling.getValue(), FlatSymbolRefAttr::get(table),
             StringAttr::get(context, feature), weighted, paddingIdx);
}

void LookupAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyPooling(getPooling()) << " " << getTable() << "[";
  printer.printAttributeWithoutType(getFeature());
  printer << "]";
  if (getWeighted())
    printer << " weighted";
  if (getPaddingIdx())
    printer << " padding_idx = " << *getPaddingIdx();
  printer << ">";
}

//===----------------------------------------------------------------------===//
// DevicesAttr and LevelAttr
//===----------------------------------------------------------------------===//

LogicalResult DevicesAttr::verify(EmitError emitError, int64_t count,
                                  StringAttr deviceClass, int64_t host,
                                  std::optional<int64_t> memoryBytes,
                                  std::optional<int64_t> denseReserve,
                                  std::optional<int64_t> fragmentationReserve,
                                  std::optional<int64_t> communicatorReserve) {
  if (count <= 0 || count > neuroshard::kMaxDevices)
    return emitError() << "number of devices must be in [1, "
                       << neuroshard::kMaxDevices << "], got: " << count;
  if (deviceClass.empty())
    return emitError() << "device class must not be empty";
  if (host < 0)
    return emitError() << "'host' must not be negative, got: " << host;
  if (memoryBytes && *memoryBytes <= 0)
    return emitError() << "'memory' must be positive, got: " << *memoryBytes;
  for (auto [key, bytes] :
       {std::pair("dense_reserve", denseReserve),
        std::pair("fragmentation_reserve", fragmentationReserve),
        std::pair("communicator_reserve", communicatorReserve)})
    if (bytes && *bytes < 0)
      return emitError() << "'" << key
                         << "' must not be negative, got: " << *bytes;
  return success();
}

Attribute DevicesAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  llvm::SMLoc loc = parser.getCurrentLocation();
  int64_t count = 0, host = 0;
  std::string deviceClass;
  std::optional<int64_t> memoryBytes, dense, fragmentation, communicator;
  auto parseValue = [&](llvm::StringRef key) -> std::optional<ParseResult> {
    if (key == "host")
      return parseCount(parser, host);
    if (key == "memory")
      return parseCount(parser, memoryBytes);
    if (key == "dense_reserve")
      return parseCount(parser, dense);
    if (key == "fragmentation_reserve")
      return parseCount(parser, fragmentation);
    if (key == "communicator_reserve")
      return parseCount(parser, communicator);
    return std::nullopt;
  };
  if (parser.parseLess() || parser.parseInteger(count) ||
      parser.parseKeyword("x") || parser.parseString(&deviceClass) ||
      parsePairs(parser,
                 "host, memory, dense_reserve, fragmentation_reserve, "
                 "communicator_reserve",
                 /*first=*/false, parseValue))
    return {};
  return parser.getChecked<DevicesAttr>(
      loc, context, count, StringAttr::get(context, deviceClass), host,
      memoryBytes, dense, fragmentation, communicator);
}

void DevicesAttr::print(AsmPrinter &printer) const {
  printer << "<" << getCount() << " x ";
  printer.printAttributeWithoutType(getDeviceClass());
  if (getHost() != 0)
    printer << ", host = " << getHost();
  for (auto [key, bytes] :
       {std::pair("memory", getMemoryBytes()),
        std::pair("dense_reserve", getDenseReserve()),
        std::pair("fragmentation_reserve", getFragmentationReserve()),
        std::pair("communicator_reserve", getCommunicatorReserve())})
    if (bytes)
      printer << ", " << key << " = " << *bytes;
  printer << ">";
}

LogicalResult LevelAttr::verify(EmitError emitError, StringAttr name,
                                DenseI64ArrayAttr groups,
                                FloatAttr bandwidthGBps, FloatAttr latencyUs,
                                FloatAttr groupBandwidthGBps) {
  if (name.empty())
    return emitError() << "level name must not be empty";
  if (groups.empty() ||
      llvm::any_of(groups.asArrayRef(), [](int64_t n) { return n <= 0; }))
    return emitError() << "'groups' must be positive sizes";
  double bandwidth = bandwidthGBps.getValueAsDouble();
  if (!(std::isfinite(bandwidth) && bandwidth > 0))
    return emitError() << "'bandwidth' must be finite and positive";
  return failure(failed(checkNonNegative(emitError, "latency", latencyUs)) ||
                 failed(checkNonNegative(emitError, "group_bandwidth",
                                         groupBandwidthGBps)));
}

Attribute LevelAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  llvm::SMLoc loc = parser.getCurrentLocation();
  std::string name;
  SmallVector<int64_t> groups;
  FloatAttr bandwidth = f64(context, 0), latency = bandwidth,
            groupBandwidth = bandwidth;
  auto parseGroup = [&]() {
    return parser.parseInteger(groups.emplace_back());
  };
  auto parseValue = [&](llvm::StringRef key) -> std::optional<ParseResult> {
    if (key == "groups")
      return failure(parser.parseEqual() ||
                     parser.parseCommaSeparatedList(
                         AsmParser::Delimiter::Square, parseGroup));
    if (key == "bandwidth")
      return parseNumber(parser, bandwidth);
    if (key == "latency")
      return parseNumber(parser, latency);
    if (key == "group_bandwidth")
      return parseNumber(parser, groupBandwidth);
    return std::nullopt;
  };
  if (parser.parseLess() || parser.parseString(&name) ||
      parsePairs(parser, "groups, bandwidth, latency, group_bandwidth",
                 /*first=*/false, parseValue))
    return {};
  return parser.getChecked<LevelAttr>(loc, context,
                                      StringAttr::get(context, name),
                                      DenseI64ArrayAttr::get(context, groups),
                                      bandwidth, latency, groupBandwidth);
}

void LevelAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printAttributeWithoutType(getName());
  printer << ", groups = [";
  llvm::interleaveComma(getGroups().asArrayRef(), printer);
  printer << "], bandwidth = ";
  printNumber(printer, getBandwidthGBps());
  printer << ", latency = ";
  printNumber(printer, getLatencyUs());
  if (getGroupBandwidthGBps().getValueAsDouble() != 0) {
    printer << ", group_bandwidth = ";
    printNumber(printer, getGroupBandwidthGBps());
  }
  printer << ">";
}
