//===- CheckLayout.h - Checks the layout of exchanges -----------*- C++ -*-===//
//
// Properties of a layout by which steps give right results. Each check throws a
// RuntimeError that names the place in the JSON that the layout was read from.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_ARTIFACT_MANIFEST_CHECKLAYOUT_H
#define NEUROSHARD_LIB_ARTIFACT_MANIFEST_CHECKLAYOUT_H

#include "JsonValue.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

#include <vector>

namespace neuroshard {

/// Each range of rows has one bucket per lookup, which some device receives,
/// once. The buckets of a lookup have all rows of its table. `value` is the
/// whole layout.
void checkBuckets(const JsonValue &value, const ExchangePlan &plan,
                  const ExchangeSpec &spec, const ExchangeLayout &layout);

/// Segments lie side by side in `width` columns, and each column of each part
/// is in one of them. A segment has its parts in ascending order. `value` is
/// the list of the segments, `parts` has the columns of each part.
void checkSegments(const JsonValue &value, const std::vector<Segment> &segments,
                   const std::vector<Range> &parts, int64_t width);

/// Each column of each part of a relayed result is in one sum of the relay of
/// its group, together with the same column of the group's other parts, in the
/// order of the parts. The result takes each sum once. `value` is the whole
/// layout.
void checkRelays(const JsonValue &value, const DeviceGroups &groups,
                 const ExchangeLayout &layout);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_MANIFEST_CHECKLAYOUT_H
