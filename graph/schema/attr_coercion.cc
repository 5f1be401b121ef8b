#include "graph/schema/attr_coercion.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/base/dtype.h"
#include "graph/schema/paddle_dtypes.h"

namespace halftone {
namespace {

std::optional<AttrValue> FromBool(bool value, AttrKind kind) {
  if (kind == AttrKind::kInt) return AttrValue(int64_t{value});
  return std::nullopt;
}

std::optional<AttrValue> FromInt(int64_t value, AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool:
      if (value != 0 && value != 1) return std::nullopt;
      return AttrValue(value == 1);
    case AttrKind::kFloat:
      return AttrValue(static_cast<double>(value));
    case AttrKind::kInts:
      return AttrValue(std::vector<int64_t>{value});
    case AttrKind::kFloats:
      return AttrValue(std::vector<double>{static_cast<double>(value)});
    case AttrKind::kDType:
      if (const auto dtype = DTypeFromPaddle(value)) return AttrValue(*dtype);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<AttrValue> FromString(const std::string& value, AttrKind kind) {
  if (kind == AttrKind::kStrings) {
    return AttrValue(std::vector<std::string>{value});
  }
  if (kind == AttrKind::kDType) {
    if (const auto dtype = DTypeFromName(value)) return AttrValue(*dtype);
  }
  return std::nullopt;
}

std::optional<AttrValue> Empty(AttrKind kind) {
  if (kind == AttrKind::kInts) return AttrValue(std::vector<int64_t>());
  if (kind == AttrKind::kFloats) return AttrValue(std::vector<double>());
  if (kind == AttrKind::kStrings) return AttrValue(std::vector<std::string>());
  return std::nullopt;
}

}  // namespace

std::optional<AttrValue> CoerceAttr(AttrValue value, AttrKind kind) {
  if (KindOf(value) == kind) return value;
  if (const auto* b = std::get_if<bool>(&value)) return FromBool(*b, kind);
  if (const auto* n = std::get_if<int64_t>(&value)) return FromInt(*n, kind);
  if (const auto* f = std::get_if<double>(&value)) {
    if (kind == AttrKind::kFloats) return AttrValue(std::vector<double>{*f});
    return std::nullopt;
  }
  if (const auto* s = std::get_if<std::string>(&value)) {
    return FromString(*s, kind);
  }
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    if (ints->empty()) return Empty(kind);
    if (kind == AttrKind::kFloats) {
      return AttrValue(std::vector<double>(ints->begin(), ints->end()));
    }
  }
  if (const auto* floats = std::get_if<std::vector<double>>(&value)) {
    if (floats->empty()) return Empty(kind);
  }
  if (const auto* strings = std::get_if<std::vector<std::string>>(&value)) {
    if (strings->empty()) return Empty(kind);
  }
  return std::nullopt;
}

}  // namespace halftone
