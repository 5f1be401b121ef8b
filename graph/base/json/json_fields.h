// Fields of a JSON object by type and range. Errors (kModel) begin with the
// object's name: "f.json: step: expected a whole number from 0 to 9, found -1".
#ifndef HALFTONE_GRAPH_BASE_JSON_JSON_FIELDS_H_
#define HALFTONE_GRAPH_BASE_JSON_JSON_FIELDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace halftone {

// Beyond it a double, as JSON's readers elsewhere have it, is not exact.
inline constexpr int64_t kMaxExactInteger = int64_t{1} << 53;

// Reads fields one after the other and keeps the first error. `object` and
// `name` outlive it; `name` says in errors what the object is.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, absl::string_view name);

  // What is missing or wrong leaves the target as it is.
  void Integer(const char* field, int64_t least, int64_t most, int64_t* target);
  void Text(const char* field, std::string* target);
  void Bool(const char* field, bool* target);
  // An object or a list; an empty one if it is missing or wrong.
  const nlohmann::json& Object(const char* field);
  const nlohmann::json& List(const char* field);

  void Fail(absl::string_view what);
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const char* field, absl::string_view expected);
  void Wrong(const char* field, absl::string_view expected,
             const nlohmann::json& found);

  const nlohmann::json& object_;
  absl::string_view name_;
  absl::Status status_;
};

// A value or name for an error message: cut, whatever its size.
std::string ShownJson(const nlohmann::json& value);
std::string ShownName(absl::string_view name);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_JSON_JSON_FIELDS_H_
