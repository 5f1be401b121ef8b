#include "graph/base/json/json_fields.h"

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostShown = 60;

const Json& Nothing(bool list) {
  static const Json& object = *new Json(Json::object());
  static const Json& array = *new Json(Json::array());
  return list ? array : object;
}

}  // namespace

std::string ShownJson(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  // A string of control characters would be worth six bytes each.
  if (value.is_string() &&
      value.get_ref<const std::string&>().size() > kMostShown) {
    return "a long text";
  }
  return value.dump(-1, ' ', /*ensure_ascii=*/true,
                    Json::error_handler_t::replace);
}

std::string ShownName(absl::string_view name) {
  if (name.size() <= kMostShown) return std::string(name);
  return absl::StrCat(name.substr(0, kMostShown), "... (", name.size(),
                      " bytes)");
}

JsonFields::JsonFields(const Json& object, absl::string_view name)
    : object_(object), name_(name) {
  if (!object.is_object()) {
    Fail(absl::StrCat("expected an object, found ", ShownJson(object)));
  }
}

void JsonFields::Integer(const char* field, int64_t least, int64_t most,
                         int64_t* target) {
  const std::string expected =
      absl::StrCat("a whole number from ", least, " to ", most);
  const Json* found = Find(field, expected);
  if (found == nullptr) return;
  // An unsigned one may be beyond int64.
  const bool whole =
      found->is_number_unsigned()
          ? found->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
          : found->is_number_integer();
  const int64_t value = whole ? found->get<int64_t>() : 0;
  if (!whole || value < least || value > most) {
    return Wrong(field, expected, *found);
  }
  *target = value;
}

void JsonFields::Text(const char* field, std::string* target) {
  const Json* found = Find(field, "a text");
  if (found == nullptr) return;
  if (!found->is_string()) return Wrong(field, "a text", *found);
  *target = found->get<std::string>();
}

void JsonFields::Bool(const char* field, bool* target) {
  const Json* found = Find(field, "true or false");
  if (found == nullptr) return;
  if (!found->is_boolean()) return Wrong(field, "true or false", *found);
  *target = found->get<bool>();
}

const Json& JsonFields::Object(const char* field) {
  const Json* found = Find(field, "an object");
  if (found != nullptr && found->is_object()) return *found;
  if (found != nullptr) Wrong(field, "an object", *found);
  return Nothing(/*list=*/false);
}

const Json& JsonFields::List(const char* field) {
  const Json* found = Find(field, "a list");
  if (found != nullptr && found->is_array()) return *found;
  if (found != nullptr) Wrong(field, "a list", *found);
  return Nothing(/*list=*/true);
}

void JsonFields::Fail(absl::string_view what) {
  if (status_.ok()) status_ = ModelError(name_, ": ", what);
}

const Json* JsonFields::Find(const char* field, absl::string_view expected) {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(field);
  if (found != object_.end()) return &*found;
  Fail(absl::StrCat(field, ": expected ", expected, ", found nothing"));
  return nullptr;
}

void JsonFields::Wrong(const char* field, absl::string_view expected,
                       const Json& found) {
  Fail(absl::StrCat(field, ": expected ", expected, ", found ",
                    ShownJson(found)));
}

}  // namespace halftone
