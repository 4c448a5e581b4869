//===- BindCostModel.cpp - Inputs of cost models, for Python --------------===//

#include "Bindings.h"
#include "CostModelHandle.h"
#include "Errors.h"

#include "neuroshard/CostModel/Registry.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace nb = nanobind;
using namespace neuroshard;
using namespace neuroshard::python;

namespace {

template <auto Member> auto field() {
  return [](const OwnedShardWork &shard) { return shard.work.*Member; };
}

template <auto Member> auto enumField() {
  return
      [](const OwnedShardWork &shard) { return toString(shard.work.*Member); };
}

const Table &tableOf(const OwnedShardWork &shard) {
  return shard.problem->tables[static_cast<size_t>(shard.work.table)];
}

std::string describe(const OwnedShardWork &shard) {
  std::string text = "ShardWork(table='";
  return text.append(tableOf(shard).name)
      .append("', rows=")
      .append(std::to_string(shard.work.rows))
      .append(", width=")
      .append(std::to_string(shard.work.width))
      .append(")");
}

void bindShardWork(nb::module_ &module) {
  using Work = ShardWork;
  nb::class_<OwnedShardWork>(
      module, "ShardWork",
      "What a cost model sees of one shard. All counts are expected values per "
      "global batch, for this shard (its share of the rows; a replica: its "
      "share of the batch).")
      .def_prop_ro("table",
                   [](const OwnedShardWork &s) { return tableOf(s).name; })
      .def_prop_ro("rows", field<&Work::rows>())
      .def_prop_ro("width", field<&Work::width>(), "Columns of the shard.")
      .def_prop_ro("dim", field<&Work::width>(),
                   "The same as width: the shard's own number of columns.")
      .def_prop_ro("table_rows", field<&Work::tableRows>())
      .def_prop_ro("table_dim", field<&Work::tableDim>())
      .def_prop_ro("type", enumField<&Work::elementType>())
      .def_prop_ro("output_type", enumField<&Work::outputType>())
      .def_prop_ro("optimizer", enumField<&Work::optimizer>())
      .def_prop_ro("pooling", field<&Work::pooling>(),
                   "Ids per sample, summed over the features of the table.")
      .def_prop_ro("features", field<&Work::features>(),
                   "How many features read the table.")
      .def_prop_ro("lookups", field<&Work::lookups>(), "Ids read.")
      .def_prop_ro("output_rows", field<&Work::outputRows>(),
                   "Result rows written: bags, or ids when unpooled.")
      .def_prop_ro("unique_rows", field<&Work::uniqueRows>(),
                   "Distinct rows read.")
      .def_prop_ro("update_lookups", field<&Work::updateLookups>())
      .def_prop_ro("update_gradient_rows", field<&Work::updateGradientRows>())
      .def_prop_ro("update_unique_rows", field<&Work::updateUniqueRows>())
      .def_prop_ro("id_bytes", field<&Work::idBytes>())
      .def_prop_ro("weighted", field<&Work::weighted>())
      .def_prop_ro("row_split", field<&Work::rowSplit>())
      .def_prop_ro("column_split", field<&Work::columnSplit>())
      .def_prop_ro("replicated", field<&Work::replicated>())
      .def_prop_ro("exact_norms", field<&Work::exactNorms>(),
                   "A row-wise state kept exact over column shards.")
      .def_prop_ro("dims", field<&Work::dims>(),
                   "Elements of width per sample over the features; 0 for a "
                   "replica.")
      .def_prop_ro("input_bytes", field<&Work::inputBytes>())
      .def_prop_ro("forward_bytes", field<&Work::forwardBytes>())
      .def_prop_ro("backward_bytes", field<&Work::backwardBytes>())
      .def_ro("reuse", &OwnedShardWork::reuse,
              "Of the distinct ids of a batch, the share in each of the 17 "
              "bins; None when unknown.")
      .def_ro("reuse_batch", &OwnedShardWork::reuseBatch,
              "Global batch at which reuse was measured; 0 when unknown.")
      .def("__repr__", &describe);
  nb::class_<PythonShardSet>(
      module, "ShardSet",
      "The shards of one device, in the order in which they were placed. Never "
      "empty: a device without shards costs nothing.")
      .def_prop_ro(
          "device_class",
          [](const PythonShardSet &set) { return set.deviceClass; },
          nb::rv_policy::reference)
      .def_prop_ro(
          "shards", [](const PythonShardSet &set) { return set.shards; },
          nb::sig("def shards(self) -> list[ShardWork]"))
      .def("__repr__", [](const PythonShardSet &set) {
        std::string text = "ShardSet(";
        return text.append(nb::cast<std::string>(nb::repr(set.shards)))
            .append(")");
      });
}

} // namespace

void python::bindCostModel(nb::module_ &module) {
  bindShardWork(module);
  module.def("is_built_in_cost_model", &isBuiltInCostModel, nb::arg("name"),
             "Whether the name means a model of NeuroShard, or a file.");
  nb::class_<CostModelHandle>(module, "Model", "A cost model for one problem.")
      .def_static(
          "by_name",
          [](std::string_view name, const ShardingProblem &problem) {
            CostModelHandle handle;
            handle.model = valueOrRaise(makeCostModel(name, problem.topology),
                                        "UnknownCostModel");
            return handle;
          },
          nb::arg("name"), nb::arg("problem"))
      .def_static(
          "of_python",
          [](nb::object model, std::string name, bool monotone,
             std::string origin, nb::object topology,
             std::shared_ptr<ShardingProblem> problem) {
            CostModelHandle handle;
            auto adapter = std::make_shared<PythonCostModel>(
                std::move(model), std::move(name), monotone, std::move(origin),
                std::move(topology), std::move(problem));
            handle.python = adapter.get();
            handle.model = std::move(adapter);
            return handle;
          },
          nb::arg("model"), nb::arg("name"), nb::arg("monotone"),
          nb::arg("origin"), nb::arg("topology"), nb::arg("problem"))
      .def_prop_ro("name", [](const CostModelHandle &handle) {
        return handle.model->name();
      });
}
