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

OptimizerAttr OptimizerAttr::get(MLIRContext *context,
                                 const neuroshard::Optimizer &optimizer) {
  return get(context, optimizer.kind, f64(context, optimizer.eps),
             f64(context, optimizer.beta1), f64(context, optimizer.beta2),
             f64(context, optimizer.initialAccumulator),
             f64(context, optimizer.weightDecay), optimizer.weightDecayMode,
             f64(context, optimizer.l1Penalty),
             f64(context, optimizer.l2Penalty), f64(context, optimizer.eta),
             f64(context, optimizer.counterHalflife),
             f64(context, optimizer.adjustmentIter),
             f64(context, optimizer.adjustmentUb),
             f64(context, optimizer.maxGradient), optimizer.stochasticRounding);
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
          .stochasticRounding = getStochasticRounding()};
}

LogicalResult
OptimizerAttr::verify(EmitError emitError, neuroshard::OptimizerKind kind,
                      FloatAttr eps, FloatAttr beta1, FloatAttr beta2,
                      FloatAttr initialAccumulator, FloatAttr weightDecay,
                      neuroshard::WeightDecayMode mode, FloatAttr l1Penalty,
                      FloatAttr l2Penalty, FloatAttr eta,
                      FloatAttr counterHalflife, FloatAttr adjustmentIter,
                      FloatAttr adjustmentUb, FloatAttr maxGradient, bool) {
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
                    .weightDecay = weightDecay.getValueAsDouble(),
                    .weightDecayMode = mode,
                    .l1Penalty = l1Penalty.getValueAsDouble(),
                    .l2Penalty = l2Penalty.getValueAsDouble(),
                    .eta = eta.getValueAsDouble(),
                    .counterHalflife = counterHalflife.getValueAsDouble(),
                    .adjustmentIter = adjustmentIter.getValueAsDouble(),
                    .adjustmentUb = adjustmentUb.getValueAsDouble()});
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
            decay = defaults.getWeightDecay(),
            l1Penalty = defaults.getL1Penalty(),
            l2Penalty = defaults.getL2Penalty(), eta = defaults.getEta(),
            halflife = defaults.getCounterHalflife(),
            adjustmentIter = defaults.getAdjustmentIter(),
            adjustmentUb = defaults.getAdjustmentUb(),
            maxGradient = defaults.getMaxGradient();
  neuroshard::WeightDecayMode mode = defaults.getWeightDecayMode();
  bool isStochastic = false;
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
    if (key == "weight_decay_mode")
      return parseMode(parser, mode);
    if (key == "l1_penalty")
      return parseNumber(parser, l1Penalty);
    if (key == "l2_penalty")
      return parseNumber(parser, l2Penalty);
    if (key == "eta")
      return parseNumber(parser, eta);
    if (key == "counter_halflife")
      return parseNumber(parser, halflife);
    if (key == "adjustment_iter")
      return parseNumber(parser, adjustmentIter);
    if (key == "adjustment_ub")
      return parseNumber(parser, adjustmentUb);
    if (key == "max_gradient")
      return parseNumber(parser, maxGradient);
    if (key == "stochastic_rounding") {
      isStochastic = true;
      return success();
    }
    return std::nullopt;
  };
  if (parsePairs(parser,
                 "eps, beta1, beta2, initial_accumulator, weight_decay, "
                 "weight_decay_mode, l1_penalty, l2_penalty, eta, "
                 "counter_halflife, adjustment_iter, adjustment_ub, "
                 "max_gradient, stochastic_rounding",
                 /*first=*/false, parseValue))
    return {};
  return parser.getChecked<OptimizerAttr>(
      loc, context, *kind, eps, beta1, beta2, accumulator, decay, mode,
      l1Penalty, l2Penalty, eta, halflife, adjustmentIter, adjustmentUb,
      maxGradient, isStochastic);
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
  if (getWeightDecayMode() != defaults.getWeightDecayMode())
    printer << ", weight_decay_mode = "
            << stringifyWeightDecayMode(getWeightDecayMode());
  printPair("l1_penalty", getL1Penalty(), defaults.getL1Penalty());
  printPair("l2_penalty", getL2Penalty(), defaults.getL2Penalty());
  printPair("eta", getEta(), defaults.getEta());
  printPair("counter_halflife", getCounterHalflife(),
            defaults.getCounterHalflife());
  printPair("adjustment_iter", getAdjustmentIter(),
            defaults.getAdjustmentIter());
  printPair("adjustment_ub", getAdjustmentUb(), defaults.getAdjustmentUb());
  printPair("max_gradient", getMaxGradient(), defaults.getMaxGradient());
  if (getStochasticRounding())
    printer << ", stochastic_rounding";
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
