// JSON as the verbs print it.
#ifndef HALFTONE_TOOLS_COMMON_JSON_TEXT_H_
#define HALFTONE_TOOLS_COMMON_JSON_TEXT_H_

#include <string>

#include "nlohmann/json.hpp"

namespace halftone {
namespace tools {

// An object a line for each member, or on one line (`indent` -1), and a
// newline. Paths and names are bytes: what is no UTF-8 in them becomes U+FFFD.
inline std::string JsonText(const nlohmann::ordered_json& json,
                            int indent = 1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_COMMON_JSON_TEXT_H_
