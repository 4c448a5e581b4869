//===- Attributes.cpp - Attributes of the dialect -------------------------===//

#include "AttributeSyntax.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/EnumNames.h"
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

} // namespace

//===----------------------------------------------------------------------===//
// OptimizerAttr
//===----------------------------------------------------------------------===//

/// Calls `make` with the parameters of the attribute.
template <typename MakeT>
static OptimizerAttr makeOptimizer(MLIRContext *context,
                                   const neuroshard::Optimizer &optimizer,
                                   MakeT make) {
  return make(
      context, optimizer.kind, f64(context, optimizer.eps),
      f64(context, optimizer.beta1), f64(context, optimizer.beta2),
      f64(context, optimizer.initialAccumulator),
      f64(context, optimizer.weightDecay), optimizer.weightDecayMode,
      f64(context, optimizer.l1Penalty), f64(context, optimizer.l2Penalty),
      f64(context, optimizer.eta), f64(context, optimizer.counterHalflife),
      f64(context, optimizer.adjustmentIter),
      f64(context, optimizer.adjustmentUb), f64(context, optimizer.maxGradient),
      optimizer.stochasticRounding, optimizer.catchUp);
}

OptimizerAttr OptimizerAttr::get(MLIRContext *context,
                                 const neuroshard::Optimizer &optimizer) {
  return makeOptimizer(context, optimizer,
                       [](auto... parameters) { return get(parameters...); });
}

OptimizerAttr
OptimizerAttr::getChecked(EmitError emitError, MLIRContext *context,
                          const neuroshard::Optimizer &optimizer) {
  return makeOptimizer(context, optimizer, [&](auto... parameters) {
    return getChecked(emitError, parameters...);
  });
}

neuroshard::Optimizer OptimizerAttr::getOptimizer() const {
  return {.kind = getKind(),
          .eps = getEps().getValueAsDouble(),
          .beta1 = getBeta1().getValueAsDouble(),
          .beta2 = getBeta2().getValueAsDouble(),
          .initialAccumulator = getInitialAccumulator().getValueAsDouble(),
          .weightDecay = getWeightDecay().getValueAsDouble(),
          .weightDecayMode = getWeightDecayMode(),
          .l1Penalty = getL1Penalty().getValueAsDouble(),
          .l2Penalty = getL2Penalty().getValueAsDouble(),
          .eta = getEta().getValueAsDouble(),
          .counterHalflife = getCounterHalflife().getValueAsDouble(),
          .adjustmentIter = getAdjustmentIter().getValueAsDouble(),
          .adjustmentUb = getAdjustmentUb().getValueAsDouble(),
          .maxGradient = getMaxGradient().getValueAsDouble(),
          .stochasticRounding = getStochasticRounding(),
          .catchUp = getCatchUp()};
}

LogicalResult OptimizerAttr::verify(
    EmitError emitError, neuroshard::OptimizerKind kind, FloatAttr eps,
    FloatAttr beta1, FloatAttr beta2, FloatAttr initialAccumulator,
    FloatAttr weightDecay, neuroshard::WeightDecayMode mode,
    FloatAttr l1Penalty, FloatAttr l2Penalty, FloatAttr eta,
    FloatAttr counterHalflife, FloatAttr adjustmentIter, FloatAttr adjustmentUb,
    FloatAttr maxGradient, bool, bool catchUp) {
  if (failed(checkNonNegative(emitError, "eps", eps)) ||
      failed(checkNonNegative(emitError, "initial_accumulator",
                              initialAccumulator)) ||
      failed(checkNonNegative(emitError, "weight_decay", weightDecay)) ||
      failed(checkNonNegative(emitError, "l1_penalty", l1Penalty)) ||
      failed(checkNonNegative(emitError, "l2_penalty", l2Penalty)) ||
      failed(checkNonNegative(emitError, "eta", eta)) ||
      failed(checkNonNegative(emitError, "adjustment_ub", adjustmentUb)) ||
      failed(checkNonNegative(emitError, "max_gradient", maxGradient)))
    return failure();
  for (auto [name, beta] : {std::pair("beta1", beta1), {"beta2", beta2}}) {
    double value = beta.getValueAsDouble();
    if (!(value >= 0 && value < 1))
      return emitError() << "'" << name
                         << "' must be in [0, 1), got: " << value;
  }
  std::optional<neuroshard::SettingError> error =
      settingError({.kind = kind,
                    .eps = eps.getValueAsDouble(),
                    .beta1 = beta1.getValueAsDouble(),
                    .beta2 = beta2.getValueAsDouble(),
                    .initialAccumulator = initialAccumulator.getValueAsDouble(),
                    .weightDecay = weightDecay.getValueAsDouble(),
                    .weightDecayMode = mode,
                    .l1Penalty = l1Penalty.getValueAsDouble(),
                    .l2Penalty = l2Penalty.getValueAsDouble(),
                    .eta = eta.getValueAsDouble(),
                    .counterHalflife = counterHalflife.getValueAsDouble(),
                    .adjustmentIter = adjustmentIter.getValueAsDouble(),
                    .adjustmentUb = adjustmentUb.getValueAsDouble(),
                    .maxGradient = maxGradient.getValueAsDouble(),
                    .catchUp = catchUp});
  if (error)
    return emitError() << "'" << error->setting << "': " << error->message;
  return success();
}

static void emitUnknownOptimizer(InFlightDiagnostic error,
                                 llvm::StringRef name) {
  error << "unknown optimizer '" << name << "', expected one of: ";
  llvm::interleaveComma(
      neuroshard::kOptimizers, error,
      [&](const auto &properties) { error << properties.name; });
}

static ParseResult parseMode(AsmParser &parser,
                             neuroshard::WeightDecayMode &mode) {
  llvm::StringRef name;
  if (parser.parseEqual())
    return failure();
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional parsed = neuroshard::symbolizeWeightDecayMode(name);
  if (!parsed)
    return parser.emitError(loc)
           << "'weight_decay_mode' must be "
           << neuroshard::choicesOf<neuroshard::WeightDecayMode>()
           << ", got: " << name;
  mode = *parsed;
  return success();
}

/// All settings of optimizers, for an error.
static std::string allSettings() {
  std::string names;
  for (const neuroshard::NumberSetting &setting : neuroshard::kNumberSettings)
    names += std::string(setting.name) + ", ";
  return names + "weight_decay_mode, stochastic_rounding, catch_up";
}

/// Reads the value of a setting; nullopt if optimizers have none of this name.
static std::optional<ParseResult>
parseSetting(AsmParser &parser, llvm::StringRef key,
             neuroshard::Optimizer &optimizer) {
  if (key == "weight_decay_mode")
    return parseMode(parser, optimizer.weightDecayMode);
  if (key == "stochastic_rounding") {
    optimizer.stochasticRounding = true;
    return success();
  }
  if (key == "catch_up") {
    optimizer.catchUp = true;
    return success();
  }
  const auto *setting =
      llvm::find_if(neuroshard::kNumberSettings,
                    [&](const auto &known) { return key == known.name; });
  if (setting == neuroshard::kNumberSettings.end())
    return std::nullopt;
  if (!hasSetting(optimizer.kind, *setting))
    return parser.emitError(parser.getCurrentLocation())
           << noSuchSetting(optimizer.kind, setting->name);
  if (parser.parseEqual())
    return failure();
  return parser.parseFloat(optimizer.*setting->value);
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
  neuroshard::Optimizer optimizer{.kind = *kind};
  auto parseValue = [&](llvm::StringRef key) -> std::optional<ParseResult> {
    return parseSetting(parser, key, optimizer);
  };
  if (parsePairs(parser, allSettings(), /*first=*/false, parseValue))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, context, optimizer);
}

void OptimizerAttr::print(AsmPrinter &printer) const {
  neuroshard::Optimizer optimizer = getOptimizer();
  neuroshard::Optimizer defaults{.kind = optimizer.kind};
  printer << "<" << stringifyOptimizerKind(getKind());
  for (const neuroshard::NumberSetting &setting : neuroshard::kNumberSettings) {
    if (optimizer.*setting.value == defaults.*setting.value)
      continue;
    printer << ", " << setting.name << " = ";
    printer.printFloat(llvm::APFloat(optimizer.*setting.value));
  }
  if (optimizer.weightDecayMode != defaults.weightDecayMode)
    printer << ", weight_decay_mode = "
            << stringifyWeightDecayMode(optimizer.weightDecayMode);
  if (optimizer.stochasticRounding)
    printer << ", stochastic_rounding";
  if (optimizer.catchUp)
    printer << ", catch_up";
  printer << ">";
}

//===----------------------------------------------------------------------===//
// AccessAttr
//===----------------------------------------------------------------------===//

LogicalResult AccessAttr::verify(EmitError emitError, int64_t batch,
                                 DenseF64ArrayAttr reuse,
                                 DenseF64ArrayAttr rowMass, bool rowsByUse) {
  constexpr size_t kBins = kReuseBins;
  if (batch <= 0)
    return emitError() << "'batch' must be positive, got: " << batch;
  if (reuse.size() != static_cast<int64_t>(kBins))
    return emitError() << "'reuse' must have 17 shares, got: " << reuse.size();
  double sum = 0;
  for (double share : reuse.asArrayRef()) {
    if (!(share >= 0 && share <= 1))
      return emitError() << "'reuse' shares must be in [0, 1], got: " << share;
    sum += share;
  }
  if (std::abs(sum - 1) > kHistogramTolerance)
    return emitError() << "'reuse' shares must sum to 1, got: " << sum;
  if (rowMass.size() % 2 != 0)
    return emitError() << "'row_mass' must be pairs (row share, lookup share)";
  for (int64_t i = 0; i < rowMass.size(); ++i) {
    double share = rowMass[i];
    if (!(share >= 0 && share <= 1))
      return emitError() << "'row_mass' shares must be in [0, 1], got: "
                         << share;
    if (i >= 2 && share < rowMass[i - 2])
      return emitError() << "'row_mass' points must ascend, got: " << share
                         << " after " << rowMass[i - 2];
  }
  if (rowsByUse && rowMass.empty())
    return emitError()
           << "'rows_by_use' needs 'row_mass', the lookups that the "
              "first rows get";
  return success();
}

Attribute AccessAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  llvm::SMLoc loc = parser.getCurrentLocation();
  int64_t batch = 0;
  auto reuse = DenseF64ArrayAttr::get(context, {});
  DenseF64ArrayAttr rowMass = reuse;
  bool rowsByUse = false;
  auto parseValue = [&](llvm::StringRef key) -> std::optional<ParseResult> {
    if (key == "batch")
      return parseCount(parser, batch);
    if (key == "reuse")
      return parseNumbers(parser, reuse);
    if (key == "row_mass")
      return parseNumbers(parser, rowMass);
    if (key == "rows_by_use") {
      rowsByUse = true;
      return success();
    }
    return std::nullopt;
  };
  if (parser.parseLess() ||
      parsePairs(parser, "batch, reuse, row_mass, rows_by_use",
                 /*first=*/true, parseValue))
    return {};
  return parser.getChecked<AccessAttr>(loc, context, batch, reuse, rowMass,
                                       rowsByUse);
}

void AccessAttr::print(AsmPrinter &printer) const {
  printer << "<batch = " << getBatch() << ", reuse = ";
  printNumbers(printer, getReuse());
  if (!getRowMass().empty()) {
    printer << ", row_mass = ";
    printNumbers(printer, getRowMass());
  }
  if (getRowsByUse())
    printer << ", rows_by_use";
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
    return emitError() << "'presence' must be in [0, 1], got: " << share;
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
