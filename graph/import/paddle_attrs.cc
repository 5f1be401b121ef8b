#include "graph/import/paddle_attrs.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/import/neutral.h"
#include "graph/io/model_values.h"
#include "graph/schema/attr_coercion.h"

namespace halftone {
namespace {

using paddle::OpDesc;

template <typename Numbers>
std::vector<int64_t> Integers(const Numbers& numbers) {
  return std::vector<int64_t>(numbers.begin(), numbers.end());
}

AttrValue FromScalar(const OpDesc::Scalar& scalar) {
  switch (scalar.type()) {
    case OpDesc::Scalar::BOOLEAN:
      return scalar.b();
    case OpDesc::Scalar::LONG:
      return int64_t{scalar.i()};
    default:
      return scalar.r();
  }
}

std::optional<AttrValue> FromScalars(const OpDesc::Attr& attr) {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  for (const OpDesc::Scalar& scalar : attr.scalars()) {
    const AttrValue value = FromScalar(scalar);
    if (const auto* i = std::get_if<int64_t>(&value)) {
      ints.push_back(*i);
    } else if (const auto* f = std::get_if<double>(&value)) {
      floats.push_back(*f);
    } else {
      return std::nullopt;
    }
  }
  if (floats.empty()) return AttrValue(std::move(ints));
  if (!ints.empty()) return std::nullopt;
  return AttrValue(std::move(floats));
}

void SetValue(const AttrValue& value, proto::Attribute* attr) {
  if (const auto* b = std::get_if<bool>(&value)) {
    attr->set_b(*b);
  } else if (const auto* i = std::get_if<int64_t>(&value)) {
    attr->set_i(*i);
  } else if (const auto* f = std::get_if<double>(&value)) {
    attr->set_f(*f);
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    attr->set_s(*s);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    attr->mutable_ints()->Add(ints->begin(), ints->end());
  } else if (const auto* floats = std::get_if<std::vector<double>>(&value)) {
    attr->mutable_floats()->Add(floats->begin(), floats->end());
  } else if (const auto* words =
                 std::get_if<std::vector<std::string>>(&value)) {
    for (const std::string& word : *words) attr->add_strings(word);
  } else {
    attr->set_s(std::string(Name(std::get<DType>(value))));
  }
}

}  // namespace

std::optional<AttrValue> ValueOf(const OpDesc::Attr& attr) {
  switch (attr.type()) {
    case OpDesc::INT:
      return AttrValue(int64_t{attr.i()});
    case OpDesc::LONG:
      return AttrValue(int64_t{attr.l()});
    case OpDesc::FLOAT:
      return AttrValue(Shortest(attr.f()));
    case OpDesc::FLOAT64:
      return AttrValue(attr.float64());
    case OpDesc::STRING:
      return AttrValue(attr.s());
    case OpDesc::BOOLEAN:
      return AttrValue(attr.b());
    case OpDesc::INTS:
      return AttrValue(Integers(attr.ints()));
    case OpDesc::LONGS:
      return AttrValue(Integers(attr.longs()));
    case OpDesc::BOOLEANS:
      return AttrValue(Integers(attr.bools()));
    case OpDesc::FLOATS: {
      std::vector<double> floats;
      for (const float number : attr.floats()) {
        floats.push_back(Shortest(number));
      }
      return AttrValue(std::move(floats));
    }
    case OpDesc::FLOAT64S:
      return AttrValue(
          std::vector<double>(attr.float64s().begin(), attr.float64s().end()));
    case OpDesc::STRINGS:
      return AttrValue(std::vector<std::string>(attr.strings().begin(),
                                                attr.strings().end()));
    case OpDesc::SCALAR:
      return FromScalar(attr.scalar());
    case OpDesc::SCALARS:
      return FromScalars(attr);
    default:
      return std::nullopt;
  }
}

bool ChangesNothing(const OpDesc::Attr& attr) {
  const std::optional<AttrValue> value = ValueOf(attr);
  return ChangesNothing(attr.name(), value.has_value() ? &*value : nullptr);
}

std::string TextOf(const OpDesc::Attr& attr) {
  const std::optional<AttrValue> value = ValueOf(attr);
  if (value.has_value()) return TextOf(*value);
  return absl::StrCat("of kind ", OpDesc::AttrType_Name(attr.type()));
}

std::string SetAttrOf(const OpSchema& schema, absl::string_view name,
                      AttrValue value, proto::OpNode* node) {
  const int index = schema.FindAttr(AttrName(schema, name));
  if (index < 0) {
    return absl::StrCat(" = ", TextOf(value), " is not taken");
  }
  const AttrSpec& spec = schema.attrs()[index];
  const AttrKind kind = KindOf(spec.default_value);
  std::string text = TextOf(value);
  const std::optional<AttrValue> coerced = CoerceAttr(std::move(value), kind);
  if (!coerced.has_value()) {
    return absl::StrCat(": expected ", Name(kind), ", found ", text);
  }
  if (!spec.required && *coerced == spec.default_value) return "";
  proto::Attribute& attr = *node->add_attr();
  attr.set_name(spec.name);
  SetValue(*coerced, &attr);
  return "";
}

}  // namespace halftone
