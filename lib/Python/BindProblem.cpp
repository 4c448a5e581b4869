//===- BindProblem.cpp - Problems, plans and their files for Python -------===//
///
/// \file
/// Python holds problems and plans as dataclasses; they come here as JSON, so
/// that one schema, one reader and one set of messages serve all front ends.
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Errors.h"

#include "neuroshard/Model/DeviceClass.h"
#include "neuroshard/Model/TableFingerprint.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Files.h"
#include "neuroshard/Serialization/Json.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>

namespace nb = nanobind;
using namespace neuroshard;
using namespace neuroshard::python;

namespace {

constexpr const char *kBadProblem = "InvalidProblem";
constexpr const char *kBadPlan = "InvalidPlan";

std::shared_ptr<ShardingProblem> problemOf(Expected<ShardingProblem> problem) {
  return std::make_shared<ShardingProblem>(
      valueOrRaise(std::move(problem), kBadProblem));
}

std::shared_ptr<ShardingPlan> planOf(Expected<ShardingPlan> plan) {
  return std::make_shared<ShardingPlan>(
      valueOrRaise(std::move(plan), kBadPlan));
}

/// parseWorkload(), with errors that name the file.
Expected<ShardingProblem> parseFile(const std::string &path,
                                    const std::string &text) {
  return parseWorkload(text).map_error(
      [&](Diagnostics errors) { return inFile(path, std::move(errors)); });
}

nb::dict toDict(const Reserves &reserves) {
  nb::dict result;
  result["dense_bytes"] = nb::cast(reserves.denseBytes);
  result["fragmentation_bytes"] = nb::cast(reserves.fragmentationBytes);
  result["communicator_bytes"] = nb::cast(reserves.communicatorBytes);
  return result;
}

nb::dict toDict(const Disk &disk) {
  nb::dict result;
  result["bytes"] = disk.bytes;
  result["reads_per_second"] = disk.readsPerSecond;
  result["bandwidth_gb_per_s"] = disk.bandwidthGBps;
  return result;
}

nb::list toList(const std::vector<const DeviceClass *> &classes) {
  nb::list result;
  for (const DeviceClass *one : classes)
    result.append(nb::cast(one, nb::rv_policy::reference));
  return result;
}

/// In the fields of the workload file.
nb::dict toDict(const Topology &topology) {
  nb::list levels, devices, hosts;
  for (const TopologyLevel &level : topology.levels) {
    nb::dict entry;
    entry["name"] = level.name;
    entry["groups"] = nb::cast(level.groupSizes);
    entry["bandwidth_gb_per_s"] = level.bandwidthGBps;
    entry["latency_us"] = level.latencyUs;
    entry["group_bandwidth_gb_per_s"] = level.groupBandwidthGBps;
    levels.append(entry);
  }
  for (const Device &device : topology.devices) {
    nb::dict entry;
    entry["class"] = device.deviceClass;
    entry["memory_bytes"] = device.memoryBytes;
    entry["host"] = device.host;
    entry["reserves"] = toDict(device.reserves);
    devices.append(entry);
  }
  for (const Host &host : topology.hosts) {
    nb::dict entry;
    entry["memory_bytes"] = host.memoryBytes;
    entry["disk"] = toDict(host.disk);
    hosts.append(entry);
  }
  nb::dict result;
  result["levels"] = levels;
  result["devices"] = devices;
  result["hosts"] = hosts;
  result["device_classes"] = toList(topology.ownClasses);
  return result;
}

void succeedOrRaise(const Expected<void> &done) {
  if (done)
    return;
  PyErr_SetString(PyExc_OSError, toString(done.error()).c_str());
  throw nb::python_error();
}

void writeText(const std::string &path, const std::string &text) {
  succeedOrRaise(writeFile(path, text));
}

void bindPlan(nb::module_ &module) {
  nb::class_<ShardingPlan>(module, "Plan", "A plan as the planner keeps it.")
      .def_static(
          "parse",
          [](std::string_view json) { return planOf(parsePlan(json)); },
          nb::arg("json"))
      .def_static(
          "read",
          [](const std::string &path) { return planOf(readPlan(path)); },
          nb::arg("path"))
      .def("to_json", [](const ShardingPlan &plan) { return writePlan(plan); })
      .def(
          "chosen_wire_type",
          [](const ShardingPlan &plan) {
            std::optional<WireType> type = chosenWireType(plan);
            return type ? toString(*type) : std::string();
          },
          nb::sig("def chosen_wire_type(self) -> str"))
      .def(
          "verify",
          [](const ShardingPlan &plan, const ShardingProblem &problem) {
            return python::toPython(verify(plan, problem));
          },
          nb::arg("problem"),
          nb::sig(
              "def verify(self, problem: Problem) -> list[tuple[str, str]]"),
          "Everything wrong: [(where, message), ...].");
}

} // namespace

void python::bindProblem(nb::module_ &module) {
  nb::class_<ShardingProblem>(module, "Problem",
                              "A problem as the planner keeps it, checked.")
      .def_static(
          "parse",
          [](std::string_view json) { return problemOf(parseWorkload(json)); },
          nb::arg("json"))
      .def_static(
          "read",
          [](const std::string &path) {
            std::string text = valueOrRaise(readFile(path), kBadProblem);
            return nb::make_tuple(problemOf(parseFile(path, text)), text);
          },
          nb::arg("path"),
          nb::sig("def read(path: str) -> tuple[Problem, str]"),
          "The problem that a file holds, and the file's text.")
      .def(
          "to_json",
          [](const ShardingProblem &problem) { return writeWorkload(problem); })
      .def("table_fingerprint", [](const ShardingProblem &problem) {
        return tableFingerprint(problem.tables);
      });
  bindPlan(module);
  module.def(
      "parse_topology",
      [](std::string_view text, const std::vector<const DeviceClass *> &own) {
        return toDict(valueOrRaise(topologyNamed(text, own), kBadProblem));
      },
      nb::arg("text"), nb::arg("device_classes"),
      nb::sig("def parse_topology(text: str, device_classes: "
              "collections.abc.Sequence[DeviceClass]) -> dict[str, "
              "typing.Any]"),
      "The topology that a text such as '8xH200' names, or a file that ends in "
      ".json.");
  module.def(
      "read_device_classes",
      [](const std::string &path) {
        return toList(valueOrRaise(readDeviceClasses(path), kBadProblem));
      },
      nb::arg("path"),
      nb::sig("def read_device_classes(path: str) -> list[DeviceClass]"),
      "The device classes that a file defines.");
  module.def(
      "read_topology",
      [](const std::string &path) {
        return toDict(valueOrRaise(readTopology(path), kBadProblem));
      },
      nb::arg("path"),
      nb::sig("def read_topology(path: str) -> dict[str, typing.Any]"),
      "The topology in a file.");
  module.def(
      "parse_byte_size",
      [](std::string_view text) {
        return valueOrRaise(parseByteSize(text), kBadProblem);
      },
      nb::arg("text"), "Bytes of a text such as '80GiB'.");
  module.def("format_bytes", &formatBytes, nb::arg("bytes"));
  module.def(
      "check_writable",
      [](const std::string &path) { succeedOrRaise(checkWritable(path)); },
      nb::arg("path"), "Raises an OSError where write_file() would.");
  module.def("write_file", &writeText, nb::arg("path"), nb::arg("text"),
             "Writes a file whole: to a temporary beside it, then renamed.");
}
