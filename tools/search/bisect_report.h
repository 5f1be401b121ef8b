// What `halftone bisect` shows.
#ifndef HALFTONE_TOOLS_SEARCH_BISECT_REPORT_H_
#define HALFTONE_TOOLS_SEARCH_BISECT_REPORT_H_

#include <string>

#include "tools/search/bisect.h"
#include "tools/search/metric.h"
#include "tools/search/trials.h"

namespace halftone {
namespace tools {

struct BisectFacts {
  std::string model, file;  // as it was typed; the source's
  std::string good, bad;    // "mnist_convnet O0"
  std::string strategy_out;
  Tolerance tolerance;
};

// A strategy file, what was found as comments at its head.
std::string BisectText(const BisectAnswer& answer, const BisectFacts& facts,
                       const Trials& trials);
std::string BisectJson(const BisectAnswer& answer, const BisectFacts& facts,
                       const Trials& trials);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_BISECT_REPORT_H_
