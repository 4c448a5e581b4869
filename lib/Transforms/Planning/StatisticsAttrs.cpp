//===- StatisticsAttrs.cpp - Statistics of ids as attributes --------------===//

#include "StatisticsAttrs.h"

using namespace mlir;
using namespace neuroshard;

AccessStatistics neuroshard::accessFrom(ir::AccessAttr attr) {
  AccessStatistics access;
  access.batch = attr.getBatch();
  ArrayRef<double> reuse = attr.getReuse().asArrayRef();
  std::copy_n(reuse.begin(), std::min(reuse.size(), access.reuse.size()),
              access.reuse.begin());
  ArrayRef<double> mass = attr.getRowMass().asArrayRef();
  for (size_t i = 0; i + 1 < mass.size(); i += 2)
    access.rowMass.push_back({mass[i], mass[i + 1]});
  access.rowsByUse = attr.getRowsByUse();
  return access;
}

void neuroshard::readStatistics(ir::FeatureAttr attr, Feature &feature) {
  feature.meanPooling = attr.getMean().getValueAsDouble();
  feature.p99Pooling = attr.getP99().getValueAsDouble();
  feature.presence = attr.getPresence().getValueAsDouble();
  feature.batch = attr.getBatch().value_or(0);
  feature.needsWeightGradient = attr.getWeightGradient();
}

ir::AccessAttr neuroshard::accessAttr(const AccessStatistics &access,
                                      MLIRContext *context) {
  SmallVector<double> mass;
  for (const RowMassQuantile &point : access.rowMass)
    mass.append({point.rowShare, point.lookupShare});
  return ir::AccessAttr::get(
      context, access.batch, DenseF64ArrayAttr::get(context, access.reuse),
      DenseF64ArrayAttr::get(context, mass), access.rowsByUse);
}

ir::FeatureAttr neuroshard::featureAttr(const Feature &feature,
                                        Builder &builder) {
  std::optional<int64_t> batch;
  if (feature.batch != 0)
    batch = feature.batch;
  return ir::FeatureAttr::get(builder.getContext(),
                              builder.getF64FloatAttr(feature.meanPooling),
                              builder.getF64FloatAttr(feature.p99Pooling),
                              builder.getF64FloatAttr(feature.presence), batch,
                              feature.needsWeightGradient);
}
