//===- UncoveredParts.h - Rectangles beside given ones ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_INITIALUNITS_UNCOVEREDPARTS_H
#define NEUROSHARD_LIB_PLANNER_INITIALUNITS_UNCOVEREDPARTS_H

#include "neuroshard/Artifact/ExchangePlan.h"

#include <vector>

namespace neuroshard {

struct Rectangle {
  Range rows;
  Range cols;

  bool operator==(const Rectangle &) const = default;
};

/// What the rectangles `covered`, which do not overlap, leave of `whole`: the
/// free row ranges of each strip between two borders of columns, with equal
/// ranges of neighbouring strips joined.
std::vector<Rectangle> uncoveredStrips(const Rectangle &whole,
                                       const std::vector<Rectangle> &covered);

/// The same with rows and columns exchanged.
std::vector<Rectangle> uncoveredBands(const Rectangle &whole,
                                      const std::vector<Rectangle> &covered);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_INITIALUNITS_UNCOVEREDPARTS_H
