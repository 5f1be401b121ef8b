// What `halftone inspect` says: every op's precision and why, every cast with
// its reader, cost and fate.
#ifndef HALFTONE_TOOLS_REPORT_INSPECT_REPORT_H_
#define HALFTONE_TOOLS_REPORT_INSPECT_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tools/report/model_facts.h"

namespace halftone {
namespace tools {

struct InspectOptions {
  bool all = false;   // no folding of scopes
  std::string scope;  // glob over names of ops and casts; empty: all
};
// A cast by its name or the value before it.
bool InScope(const proto::OpRow& op, const std::string& scope);
bool InScope(const proto::CastRow& cast, const std::string& scope);
// Errors: kUsage, a scope that matches nothing.
absl::Status CheckScope(const ModelFacts& facts, const std::string& scope);

// One screen unless `all`: in models of more than kMostRows ops, those of a
// scope ("layer3/block1/...") are one line, and equal neighbours one of them.
inline constexpr int kMostRows = 40;
// Errors are CheckScope's.
absl::StatusOr<std::string> InspectText(const ModelFacts& facts,
                                        const InspectOptions& options);

// Of a scope its ops, backward ones too, and casts; the rest is whole. Errors
// are CheckScope's.
absl::StatusOr<std::string> InspectJson(const ModelFacts& facts,
                                        const std::string& scope = "");
// Elements of its `ops` and `casts`.
nlohmann::ordered_json OpJson(const proto::OpRow& op);
nlohmann::ordered_json CastJson(const proto::CastRow& cast, int64_t samples);
// The `buckets` array of inspect and plan.
nlohmann::ordered_json BucketsJson(const proto::CompileReport& report);
// The `totals` object of inspect and compile.
nlohmann::ordered_json TotalsJson(const ModelFacts& facts);

// "GRAY_ALL_LOW <- conv1; 4 slots KEEP_F32_SLOT".
std::string WhyText(const proto::OpRow& op);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_INSPECT_REPORT_H_
