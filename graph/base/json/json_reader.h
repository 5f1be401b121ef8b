// JSON from a file that anybody may have written. Its depth and the number of
// its values are bounded before a tree of it is made: such a tree is copied,
// compared and printed by recursion, and each of its values takes up to 150
// bytes.
#ifndef HALFTONE_GRAPH_BASE_JSON_JSON_READER_H_
#define HALFTONE_GRAPH_BASE_JSON_JSON_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace halftone {

// No format of ours goes deeper than 6.
inline constexpr int kMaxJsonDepth = 32;

// The tree takes at most about 20 bytes per byte of `text`. Errors (kModel)
// name `file` and the byte: no JSON, too deep, too many values.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text,
                                         absl::string_view file);

// What a reader sees of a JSON text in its order, without a tree. Every method
// returns whether to go on; depth and syntax are checked by ReadJson.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;
  // `depth` counts the arrays and objects around: 0 for the outermost value.
  virtual bool Key(const std::string& key, int depth) = 0;
  virtual bool Integer(int64_t value, int depth) = 0;
  virtual bool Text(const std::string& value, int depth) = 0;
  // Any other scalar: null, a boolean, a fraction, a number beyond int64.
  virtual bool Other(int depth) = 0;
  virtual bool Begin(bool object, int depth) = 0;
  virtual bool End(bool object, int depth) = 0;
};

// As ParseJson, but no value is kept; OK too where the visitor ended it.
absl::Status ReadJson(absl::string_view text, absl::string_view file,
                      JsonVisitor& visitor);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_JSON_JSON_READER_H_
