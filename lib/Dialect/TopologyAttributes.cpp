//===- TopologyAttributes.cpp - Attributes of devices and levels ----------===//

#include "AttributeSyntax.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/Limits.h"

#include <cmath>
#include <string>
#include <utility>

using namespace mlir;
using namespace neuroshard::ir;

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

LogicalResult DiskAttr::verify(EmitError emitError, int64_t bytes,
                               FloatAttr readsPerSecond,
                               FloatAttr bandwidthGBps) {
  if (bytes < 0)
    return emitError() << "'bytes' must not be negative, got: " << bytes;
  return failure(
      failed(checkNonNegative(emitError, "reads", readsPerSecond)) ||
      failed(checkNonNegative(emitError, "bandwidth", bandwidthGBps)));
}

Attribute DiskAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  llvm::SMLoc loc = parser.getCurrentLocation();
  int64_t bytes = 0;
  FloatAttr reads = f64(context, 0), bandwidth = reads;
  auto parseValue = [&](llvm::StringRef key) -> std::optional<ParseResult> {
    if (key == "bytes")
      return parseCount(parser, bytes);
    if (key == "reads")
      return parseNumber(parser, reads);
    if (key == "bandwidth")
      return parseNumber(parser, bandwidth);
    return std::nullopt;
  };
  if (parser.parseLess() || parsePairs(parser, "bytes, reads, bandwidth",
                                       /*first=*/true, parseValue))
    return {};
  return parser.getChecked<DiskAttr>(loc, context, bytes, reads, bandwidth);
}

void DiskAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::ListSeparator comma;
  if (getBytes() != 0)
    printer.getStream() << comma << "bytes = " << getBytes();
  for (auto [key, rate] : {std::pair("reads", getReadsPerSecond()),
                           std::pair("bandwidth", getBandwidthGBps())})
    if (rate.getValueAsDouble() != 0) {
      printer.getStream() << comma << key << " = ";
      printNumber(printer, rate);
    }
  printer << ">";
}
