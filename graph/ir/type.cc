#include "graph/ir/type.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"

namespace halftone {
namespace {

// Saturates: a size that is out of range is refused where it is used, as any
// size that does not fit.
int64_t Multiply(int64_t a, int64_t b) {
  int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? std::numeric_limits<int64_t>::max()
                            : std::numeric_limits<int64_t>::min();
}

}  // namespace

Dim Dim::operator*(const Dim& other) const {
  Dim product(Multiply(coefficient_, other.coefficient_));
  if (product.coefficient_ == 0) return product;
  if (other.is_constant()) {
    product.powers_ = powers_;
    return product;
  }
  for (int s = 0; s < kMaxSymbols; ++s) {
    product.powers_[s] = std::min(255, powers_[s] + other.powers_[s]);
  }
  return product;
}

bool Dim::DivideBy(const Dim& other, Dim* quotient) const {
  if (other.coefficient_ == 0) return false;
  if (other.coefficient_ == -1) {  // INT64_MIN / -1 overflows
    Dim negative = other;
    negative.coefficient_ = 1;
    Dim result;
    if (!DivideBy(negative, &result)) return false;
    *quotient = result * Dim(-1);
    return true;
  }
  if (coefficient_ % other.coefficient_ != 0) return false;
  Dim result(coefficient_ / other.coefficient_);
  for (int s = 0; s < kMaxSymbols; ++s) {
    if (powers_[s] < other.powers_[s]) return false;
    result.powers_[s] = powers_[s] - other.powers_[s];
  }
  *quotient = result;
  return true;
}

int64_t Dim::Evaluate(const SymbolValues& values) const {
  int64_t result = coefficient_;
  for (int s = 0; s < kMaxSymbols; ++s) {
    for (int i = 0; i < powers_[s]; ++i) result = Multiply(result, values[s]);
  }
  return result;
}

absl::string_view Name(Layout layout) {
  return layout == Layout::kRowMajor ? "row_major" : "channels_last";
}

Dim TensorType::Elements() const {
  Dim product(1);
  for (const Dim& dim : dims) product = product * dim;
  return product;
}

std::string ToString(const Dim& dim, absl::Span<const std::string> symbols) {
  std::string text;
  for (int s = 0; s < kMaxSymbols; ++s) {
    for (int i = 0; i < dim.power(s); ++i) {
      if (!text.empty()) text += '*';
      if (s < static_cast<int>(symbols.size())) {
        text += symbols[s];
      } else {
        absl::StrAppend(&text, "?", s);
      }
    }
  }
  if (text.empty()) return absl::StrCat(dim.coefficient());
  if (dim.coefficient() != 1) absl::StrAppend(&text, "*", dim.coefficient());
  return text;
}

std::string ToString(const TensorType& type,
                     absl::Span<const std::string> symbols) {
  const auto append = [symbols](std::string* out, const Dim& dim) {
    out->append(ToString(dim, symbols));
  };
  return absl::StrCat(Name(type.dtype), "[",
                      absl::StrJoin(type.dims, ",", append), "]",
                      type.layout == Layout::kRowMajor ? "" : " @",
                      type.layout == Layout::kRowMajor ? "" : Name(type.layout),
                      type.sharded ? " @shard" : "");
}

}  // namespace halftone
