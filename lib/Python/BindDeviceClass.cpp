//===- BindDeviceClass.cpp - Device classes, for Python -------------------===//

#include "Bindings.h"
#include "Errors.h"

#include "neuroshard/Model/CloudNodes.h"
#include "neuroshard/Model/DeviceClassFields.h"
#include "neuroshard/Model/Topology.h"
#include "neuroshard/Planner/Memory.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <sstream>

namespace nb = nanobind;
using namespace neuroshard;
using namespace neuroshard::python;

namespace {

std::string describeClass(const DeviceClass &deviceClass) {
  std::ostringstream text;
  text << "DeviceClass('" << deviceClass.name << "', ";
  if (deviceClass.like)
    text << "like '" << deviceClass.like->name << "', ";
  text << formatBytes(deviceClass.memoryBytes) << " at "
       << deviceClass.memoryBandwidthGBps << " GB/s, "
       << deviceClass.devicesPerNode << " a node at "
       << deviceClass.nodeBandwidthGBps << " GB/s, "
       << deviceClass.networkBandwidthGBps << " GB/s between nodes)";
  return text.str();
}

nb::object number(double value, bool isWhole) {
  return isWhole ? nb::object(nb::int_(static_cast<int64_t>(value)))
                 : nb::object(nb::float_(value));
}

/// [(field, value, unit and meaning, source), ...].
nb::list figures(const DeviceClass &deviceClass) {
  nb::list rows;
  std::span<const DeviceClassField> fields = deviceClassFields();
  for (size_t i = 0; i < fields.size(); ++i)
    rows.append(nb::make_tuple(
        std::string(fields[i].name),
        number(fields[i].get(deviceClass), fields[i].isWhole),
        std::string(fields[i].meaning), figureSource(deviceClass, i)));
  return rows;
}

/// What a file says of the class.
nb::dict definition(const DeviceClass &deviceClass) {
  DeviceClassDefinition stated = definitionOf(deviceClass);
  nb::dict result;
  result["name"] = stated.name;
  if (!stated.like.empty())
    result["like"] = stated.like;
  if (!stated.kind.empty())
    result["kind"] = stated.kind;
  for (const auto &[name, value] : stated.numbers) {
    auto *field =
        &*std::ranges::find(deviceClassFields(), name, &DeviceClassField::name);
    result[nb::cast(name)] = number(value, field->isWhole);
  }
  return result;
}

/// A number, or of a field in bytes a text such as "80GiB".
double readNumber(const std::string &field, nb::handle value) {
  if (nb::isinstance<nb::str>(value) && field.ends_with("_bytes"))
    return static_cast<double>(
        valueOrRaise(parseByteSize(nb::cast<std::string>(value))
                         .map_error([&](Diagnostics errors) {
                           errors.front().where = "DeviceClass." + field;
                           return errors;
                         }),
                     "InvalidProblem"));
  double number = 0;
  if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, number))
    throw nb::type_error(
        ("DeviceClass." + field +
         ": expected a number, got: " + nb::cast<std::string>(nb::repr(value)))
            .c_str());
  return number;
}

std::string readText(const char *field, nb::handle value) {
  std::string text;
  if (!nb::try_cast(value, text))
    throw nb::type_error(
        (std::string("DeviceClass.") + field +
         ": expected a text, got: " + nb::cast<std::string>(nb::repr(value)))
            .c_str());
  return text;
}

/// Of what Python was called with: the name, and by keyword all others.
const DeviceClass *define(const nb::args &names, const nb::kwargs &fields) {
  if (names.size() + (fields.contains("name") ? 1 : 0) != 1)
    throw nb::type_error("DeviceClass: expected one name and figures by "
                         "keyword, as DeviceClass('MYCARD', like='H100', "
                         "memory_bytes='96GiB')");
  DeviceClassDefinition definition;
  if (names.size() == 1)
    definition.name = readText("name", names[0]);
  for (auto [key, value] : fields) {
    auto field = nb::cast<std::string>(key);
    if (field == "name" || field == "like" || field == "kind") {
      std::string &text = field == "name"   ? definition.name
                          : field == "like" ? definition.like
                                            : definition.kind;
      text = readText(field.c_str(), value);
      continue;
    }
    double number = readNumber(field, value);
    definition.numbers.emplace_back(field, number);
  }
  Expected<const DeviceClass *> made =
      defineDeviceClass(definition).map_error([](Diagnostics errors) {
        for (Diagnostic &error : errors)
          error.where = error.where.empty() ? "DeviceClass"
                                            : "DeviceClass." + error.where;
        return errors;
      });
  return valueOrRaise(std::move(made), "InvalidProblem");
}

/// For copies and pickles, which need a function of Python.
nb::tuple reduce(const DeviceClass &deviceClass) {
  nb::object restore =
      nb::module_::import_("neuroshard.costs").attr("restored_device_class");
  return nb::make_tuple(restore, nb::make_tuple(definition(deviceClass)));
}

} // namespace

void python::bindDeviceClass(nb::module_ &module) {
  nb::class_<DeviceClass> bound(
      module, "DeviceClass",
      "Figures of one kind of device: built in or of your own. "
      "Bandwidths are what a copy reaches, in GB per second.");
  bound
      // Not nb::new_, whose own errors name no argument.
      .def_static(
          "__new__",
          [](nb::handle, const nb::args &names, const nb::kwargs &fields) {
            return define(names, fields);
          },
          nb::rv_policy::reference)
      .def(
          "__init__", [](nb::handle, const nb::args &, const nb::kwargs &) {},
          nb::sig("def __init__(self, name: str, *, like: str = '', kind: str "
                  "= '', **numbers: int | float | str) -> None"),
          "A class of your own. like: a built-in class, whose figures it has "
          "where nothing is stated; kind: cpu or gpu; numbers: the other "
          "fields, bytes also as a text such as '80GiB'. Raises "
          "InvalidProblem.")
      .def("__reduce__", &reduce)
      .def_ro("name", &DeviceClass::name)
      .def_prop_ro(
          "like",
          [](const DeviceClass &deviceClass) {
            return deviceClass.like ? std::string(deviceClass.like->name)
                                    : std::string();
          },
          "The class whose figures it has where its definition says nothing; "
          "empty for none.")
      .def_prop_ro("kind",
                   [](const DeviceClass &deviceClass) {
                     return deviceClass.isCpu ? "cpu" : "gpu";
                   })
      .def_ro("is_user_defined", &DeviceClass::isUserDefined)
      .def_prop_ro("exchange_ramp_us",
                   [](const DeviceClass &deviceClass) {
                     return deviceClass.exchangeExtra.rampUs;
                   })
      .def_prop_ro("exchange_ramp_at_us",
                   [](const DeviceClass &deviceClass) {
                     return deviceClass.exchangeExtra.rampAtUs;
                   })
      .def_prop_ro("own_part_gb_per_s",
                   [](const DeviceClass &deviceClass) {
                     return deviceClass.exchangeExtra.ownGBps;
                   })
      .def("figures", &figures,
           nb::sig("def figures(self) -> list[tuple[str, float, str, str]]"),
           "Every number: [(field, value, meaning, source), ...].")
      .def("definition", &definition,
           nb::sig("def definition(self) -> dict[str, typing.Any]"),
           "What a file with device classes says of it.")
      .def("__eq__", [](const DeviceClass &one,
                        const DeviceClass &other) { return one == other; })
      .def("__eq__",
           [](const DeviceClass &, const nb::object &) { return false; })
      .def("__hash__",
           [](const DeviceClass &one) {
             return std::hash<std::string_view>()(one.name);
           })
      .def("__repr__", &describeClass);
  for (const DeviceClassField &field : deviceClassFields()) {
    auto get = [&field](const DeviceClass &deviceClass) {
      return number(field.get(deviceClass), field.isWhole);
    };
    std::string signature = "def " + std::string(field.name) + "(self) -> " +
                            (field.isWhole ? "int" : "float");
    bound.def_prop_ro(std::string(field.name).c_str(), get,
                      nb::sig(signature.c_str()),
                      std::string(field.meaning).c_str());
  }
  module.def(
      "cloud_nodes",
      [] {
        nb::list nodes;
        for (const CloudNode &node : cloudNodes())
          nodes.append(nb::make_tuple(std::string(node.name),
                                      std::string(node.deviceClass),
                                      node.devices, node.network.bandwidthGBps,
                                      node.network.latencyUs));
        return nodes;
      },
      nb::sig("def cloud_nodes() -> list[tuple[str, str, int, float, float]]"),
      "[(name, device class, devices, GB/s between nodes, latency in us), "
      "...].");
  module.def(
      "device_classes",
      [] {
        nb::dict classes;
        for (const DeviceClass &one : deviceClasses())
          classes[nb::cast(one.name)] =
              nb::cast(&one, nb::rv_policy::reference);
        return classes;
      },
      nb::sig("def device_classes() -> dict[str, DeviceClass]"),
      "Every built-in kind of device, by name.");
}
