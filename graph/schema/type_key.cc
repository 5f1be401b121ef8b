#include "graph/schema/type_key.h"

#include <cstring>
#include <type_traits>

namespace halftone {
namespace {

uint64_t BitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
uint64_t BitsOf(int64_t value) { return static_cast<uint64_t>(value); }

}  // namespace

void TypeKey::AddBinding(absl::string_view type_var, DType dtype) {
  AddText(type_var);
  Add(static_cast<uint64_t>(dtype));
}

void TypeKey::AddText(absl::string_view text) {
  Add(text.size());
  for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
    const absl::string_view piece = text.substr(i, sizeof(uint64_t));
    uint64_t word = 0;
    std::memcpy(&word, piece.data(), piece.size());
    Add(word);
  }
}

void TypeKey::AddAttr(const AttrValue& value) {
  std::visit(
      [this](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          AddText(v);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          Add(v.size());
          for (const std::string& text : v) AddText(text);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>> ||
                             std::is_same_v<T, std::vector<double>>) {
          Add(v.size());
          for (auto item : v) Add(BitsOf(item));
        } else if constexpr (std::is_same_v<T, int64_t> ||
                             std::is_same_v<T, double>) {
          Add(BitsOf(v));
        } else {
          Add(static_cast<uint64_t>(v));  // bool, DType
        }
      },
      value);
}

}  // namespace halftone
