// Curves over steps as an <svg>, drawn when the page is written.
#ifndef HALFTONE_TOOLS_REPORT_CHART_H_
#define HALFTONE_TOOLS_REPORT_CHART_H_

#include <string>
#include <vector>

#include "tools/report/run_history.h"

namespace halftone {
namespace tools {

struct Curve {
  std::string label;                      // plain text
  int colour = 0;                         // which of kColours, round and round
  const ThinnedSeries* series = nullptr;  // outlives the chart
  bool dashed = false;
};

// The mean of each bucket as a line, from its least to its most as a band; a
// gap where a bucket has no finite value. The axis of values is logarithmic
// where all are above 0 and they span more than a factor of kLogFrom. `marks`
// (may be null): buckets with a tick at the foot, such as skipped steps. A
// chart without a finite value is empty text.
std::string ChartHtml(const std::string& title,
                      const std::vector<Curve>& curves,
                      const ThinnedSeries* marks = nullptr);
inline constexpr double kLogFrom = 50;

// The colours and the script that shows values under the pointer.
extern const char kChartStyle[];
extern const char kChartScript[];

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_CHART_H_
