#include "graph/schema/type_key.h"

#include <cstring>

namespace halftone {

void TypeKey::AddBinding(absl::string_view type_var, DType dtype) {
  Add(type_var.size());
  for (size_t i = 0; i < type_var.size(); i += sizeof(uint64_t)) {
    const absl::string_view piece = type_var.substr(i, sizeof(uint64_t));
    uint64_t word = 0;
    std::memcpy(&word, piece.data(), piece.size());
    Add(word);
  }
  Add(static_cast<uint64_t>(dtype));
}

}  // namespace halftone
