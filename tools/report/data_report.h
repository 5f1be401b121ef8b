// What `halftone data` says.
#ifndef HALFTONE_TOOLS_REPORT_DATA_REPORT_H_
#define HALFTONE_TOOLS_REPORT_DATA_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/batch_reader.h"
#include "runtime/data/data_format.h"
#include "runtime/data/image_scan.h"

namespace halftone {
namespace tools {

// One split, decoded.
struct ScannedSplit {
  std::string name;
  runtime::ImageScan scan;
};
std::string ScanText(const std::string& source,
                     const std::vector<ScannedSplit>& splits,
                     const std::vector<std::string>& classes);
std::string ScanJson(const std::string& source,
                     const std::vector<ScannedSplit>& splits,
                     const std::vector<std::string>& classes);

// Of data that is no pictures; `facts_in` is the format's.
std::string FactsText(const std::string& source,
                      const std::vector<runtime::DataFacts>& facts);
std::string FactsJson(const std::string& source,
                      const std::vector<runtime::DataFacts>& facts,
                      absl::string_view facts_in);

// Samples read by so many threads in so much time.
struct ReadSpeed {
  int workers = 1;
  int64_t samples = 0;
  double seconds = 0;

  double samples_per_second() const;
};
// Reads batches in the order of training.
absl::StatusOr<ReadSpeed> MeasureReading(
    const runtime::Dataset& data, const std::vector<runtime::FeedSpec>& feeds,
    const runtime::SamplerOptions& sampler, int workers, double seconds);
std::string SpeedText(const std::string& description,
                      const std::vector<ReadSpeed>& speeds);
std::string SpeedJson(const std::string& description,
                      const std::vector<ReadSpeed>& speeds);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_DATA_REPORT_H_
