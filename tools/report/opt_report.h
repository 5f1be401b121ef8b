// What `halftone opt` says of passes; what `compile --json` does, too.
#ifndef HALFTONE_TOOLS_REPORT_OPT_REPORT_H_
#define HALFTONE_TOOLS_REPORT_OPT_REPORT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "graph/io/compiled_model.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace tools {

// [{name, ms, changed}]; those of a group in its `passes`, with `times`.
nlohmann::ordered_json PassesJson(
    const google::protobuf::RepeatedPtrField<proto::PassRow>& passes);

// A line per pass, group and phase, in the order in which they run.
std::string PassListText();
std::string PassListJson();

// What ran and, if it did not go into a file, the program.
std::string OptJson(
    const google::protobuf::RepeatedPtrField<proto::PassRow>& passes,
    absl::string_view path, absl::string_view program);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_OPT_REPORT_H_
