//===- MachineJson.cpp - Machine files from JSON --------------------------===//

#include "JsonReader.h"
#include "TopologyJson.h"
#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Serialization/Json.h"
#include "neuroshard/Support/ShortestText.h"

using namespace neuroshard;
using namespace neuroshard::json;

namespace {

/// Wider than any machine is.
constexpr double kLargestScale = 1e6, kLargestMs = 1e9;

void readNumber(Object &object, std::string_view key, double least, double most,
                const char *expected, double &out) {
  if (object.required(key, out) && !(out >= least && out <= most))
    object.reader.error(Path(object.path, key),
                        std::string(expected) + ", got: " + shortestText(out));
}

void readCount(Object &object, std::string_view key, int &out) {
  if (object.required(key, out) && out < 1)
    object.reader.error(Path(object.path, key),
                        "expected at least 1, got: " + std::to_string(out));
}

void readTime(Object &terms, std::string_view key, TimeCorrection &out) {
  const Json *value = terms.findRequired(key);
  if (!value)
    return;
  Path path(terms.path, key);
  Object object(terms.reader, *value, path);
  readNumber(object, "scale", 1 / kLargestScale, kLargestScale,
             "expected a number from 1e-6 to 1e6", out.scale);
  readNumber(object, "fixed_ms", 0, kLargestMs,
             "expected milliseconds from 0 to 1e9", out.fixedMs);
}

void readTerms(Object &object, Machine &machine) {
  const Json *value = object.findRequired("terms");
  if (!value)
    return;
  Path path(object.path, "terms");
  Object terms(object.reader, *value, path);
  readTime(terms, "input", machine.input);
  readTime(terms, "forward", machine.forward);
  readTime(terms, "forward_communication", machine.forwardCommunication);
  readTime(terms, "backward_communication", machine.backwardCommunication);
  readTime(terms, "backward", machine.backward);
}

void readInterval(Object &object, PredictionInterval &interval) {
  const Json *value = object.find("step_interval");
  if (!value)
    return;
  Path path(object.path, "step_interval");
  Object bounds(object.reader, *value, path);
  readNumber(bounds, "low", 0, 1, "expected a number from 0 to 1",
             interval.low);
  readNumber(bounds, "high", 1, kLargestScale,
             "expected a number from 1 to 1e6", interval.high);
}

} // namespace

Expected<Machine> neuroshard::parseMachine(std::string_view text) {
  Expected<Json> root = json::parse(text);
  if (!root)
    return tl::unexpected(root.error());
  Machine machine;
  Diagnostics errors, topologyErrors;
  {
    Reader reader(errors);
    Path path;
    Object object(reader, *root, path);
    readSchema(object, kMachineSchema);
    object.required("cost_model", machine.costModel);
    object.name("target", machine.target, parseTarget);
    if (object.required("device_class", machine.deviceClass) &&
        !findDeviceClass(machine.deviceClass))
      reader.error(Path(path, "device_class"),
                   "unknown device class '" + machine.deviceClass +
                       "'; known: " + deviceClassNames());
    readCount(object, "devices", machine.devices);
    readCount(object, "groups", machine.groups);
    readTerms(object, machine);
    readNumber(object, "step_fixed_ms", 0, kLargestMs,
               "expected milliseconds from 0 to 1e9", machine.fixedStepMs);
    readInterval(object, machine.interval);
    // Nothing here needs it, but whoever prices plans by this file also wants
    // them for its devices.
    if (const Json *topology = object.find("topology"))
      topologyErrors =
          check(readTopology(reader, *topology, Path(path, "topology")));
    std::vector<const DeviceClass *> classes;
    if (const Json *defined = object.find("device_classes"))
      readDeviceClasses(reader, *defined, Path(path, "device_classes"),
                        classes);
    if (const Json *measured = object.find("measured"); // for people
        measured && !measured->is_object())
      reader.wrongType(*measured, Path(path, "measured"), "an object");
  }
  if (errors.empty())
    errors = std::move(topologyErrors);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return machine;
}

Expected<Machine> neuroshard::readMachine(const std::string &path) {
  return readAs(path, parseMachine);
}
