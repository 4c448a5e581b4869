//===- SyntheticExchanges.h - Made-up measurements of exchanges -*- C++ -*-===//

#ifndef NEUROSHARD_TEST_TRAINING_SYNTHETICEXCHANGES_H
#define NEUROSHARD_TEST_TRAINING_SYNTHETICEXCHANGES_H

#include "neuroshard/CostModel/CommunicationSamples.h"

namespace neuroshard::test {

/// Exchanges among 2, 3, 4, 6 and 8 CPU devices, `perCount` each (every fifth
/// held out, and of these every second measured again), with times of the
/// closed form slowed down by what it does not know: devices share the machine,
/// and small messages cost a device extra. 3 % noise.
CommunicationSamples makeSyntheticExchanges(int perCount, uint64_t seed = 7);

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_TRAINING_SYNTHETICEXCHANGES_H
