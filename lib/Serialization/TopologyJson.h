//===- TopologyJson.h - Topologies in workloads, machine files --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_SERIALIZATION_TOPOLOGYJSON_H
#define NEUROSHARD_LIB_SERIALIZATION_TOPOLOGYJSON_H

#include "JsonReader.h"
#include "neuroshard/Model/Topology.h"

namespace neuroshard::json {

/// A list of definitions, added to `classes`: each as defineDeviceClass() makes
/// them.
void readDeviceClasses(Reader &reader, const Json &value, const Path &path,
                       std::vector<const DeviceClass *> &classes);

/// An object, or a text for topologyOfText().
Topology readTopology(Reader &reader, const Json &value, const Path &path);
Json writeTopology(const Topology &topology);

Reserves readReserves(Reader &reader, const Json &value, const Path &path);
/// An empty object if there are none.
Json writeReserves(const Reserves &reserves);

} // namespace neuroshard::json

#endif // NEUROSHARD_LIB_SERIALIZATION_TOPOLOGYJSON_H
