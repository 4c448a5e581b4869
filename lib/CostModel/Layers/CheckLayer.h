//===- CheckLayer.h - What may be wrong with a layer of a file --*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_LAYERS_CHECKLAYER_H
#define NEUROSHARD_LIB_COSTMODEL_LAYERS_CHECKLAYER_H

#include "neuroshard/CostModel/NeuralModel.h"

#include <cstdint>
#include <string>
#include <vector>

namespace neuroshard {

bool allFinite(const std::vector<float> &values);

/// What keeps a layer from following one of `in` outputs; empty when nothing.
std::string faultOf(const DenseLayer &layer, int64_t in);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_LAYERS_CHECKLAYER_H
