//===- CheckLayer.h - Checks of a layer read from a file --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_LAYERS_CHECKLAYER_H
#define NEUROSHARD_LIB_COSTMODEL_LAYERS_CHECKLAYER_H

#include "neuroshard/CostModel/DenseLayer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace neuroshard {

bool allFinite(const std::vector<float> &values);

/// What keeps a layer from following one of `in` outputs; empty when nothing.
std::string faultOf(const DenseLayer &layer, int64_t in);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_LAYERS_CHECKLAYER_H
