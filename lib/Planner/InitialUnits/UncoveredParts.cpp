//===- UncoveredParts.cpp - Rectangles beside given ones ------------------===//

#include "UncoveredParts.h"

#include <algorithm>
#include <set>

using namespace neuroshard;

/// The rows of some columns that no rectangle covers. Rectangles are sorted by
/// row and cover all of these columns or none.
static std::vector<Range> freeRows(const Range &rows, const Range &cols,
                                   const std::vector<Rectangle> &covered) {
  std::vector<Range> found;
  int64_t row = rows.begin;
  auto addUntil = [&](int64_t end) {
    if (row < end)
      found.push_back({row, end});
  };
  for (const Rectangle &rectangle : covered)
    if (rectangle.cols.overlaps(cols)) {
      addUntil(rectangle.rows.begin);
      row = rectangle.rows.end;
    }
  addUntil(rows.end);
  return found;
}

std::vector<Rectangle>
neuroshard::uncoveredStrips(const Rectangle &whole,
                            const std::vector<Rectangle> &covered) {
  std::set<int64_t> borders = {whole.cols.begin, whole.cols.end};
  for (const Rectangle &rectangle : covered)
    borders.insert({rectangle.cols.begin, rectangle.cols.end});
  std::vector<Rectangle> byRow = covered;
  std::ranges::sort(byRow, {}, [](const Rectangle &r) { return r.rows.begin; });
  std::vector<Rectangle> found;
  // Those of the strip before, which the next one may widen.
  std::vector<Rectangle> open;
  for (auto at = borders.begin(); std::next(at) != borders.end(); ++at) {
    Range cols{*at, *std::next(at)};
    std::vector<Rectangle> strip;
    for (const Range &rows : freeRows(whole.rows, cols, byRow)) {
      auto left = std::ranges::find(open, rows, &Rectangle::rows);
      int64_t begin = left == open.end() ? cols.begin : left->cols.begin;
      if (left != open.end())
        open.erase(left);
      strip.push_back({rows, {begin, cols.end}});
    }
    found.insert(found.end(), open.begin(), open.end());
    open = std::move(strip);
  }
  found.insert(found.end(), open.begin(), open.end());
  return found;
}

std::vector<Rectangle>
neuroshard::uncoveredBands(const Rectangle &whole,
                           const std::vector<Rectangle> &covered) {
  auto transposed = [](const Rectangle &r) {
    return Rectangle{r.cols, r.rows};
  };
  std::vector<Rectangle> sources;
  for (const Rectangle &rectangle : covered)
    sources.push_back(transposed(rectangle));
  std::vector<Rectangle> found;
  for (const Rectangle &rectangle : uncoveredStrips(transposed(whole), sources))
    found.push_back(transposed(rectangle));
  return found;
}
