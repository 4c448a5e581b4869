//===- CloudNodes.h - The usual nodes of clouds -----------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_CLOUDNODES_H
#define NEUROSHARD_MODEL_CLOUDNODES_H

#include "neuroshard/Model/DeviceClass.h"

#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

/// A type of node that a cloud rents.
struct CloudNode {
  /// With the cloud: "aws:p5.48xlarge".
  std::string_view name;
  /// Name of a DeviceClass.
  std::string_view deviceClass;
  int devices;
  /// Between nodes, per device and direction, as reached.
  LinkFigures network;
};

std::span<const CloudNode> cloudNodes();

/// The node of this name in upper or lower case, also without the cloud where
/// one alone has it, or null.
const CloudNode *findCloudNode(std::string_view name);

/// "; did you mean 'aws:p5.48xlarge'?", or nothing.
std::string cloudSuggestion(std::string_view name);

/// "aws:p4d.24xlarge, ...": for messages.
std::string cloudNodeNames();

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_CLOUDNODES_H
