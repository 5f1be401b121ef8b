#include "graph/ir/attr.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/hash/hash.h"
#include "graph/base/dtype.h"
#include "graph/base/mix.h"

namespace halftone {
namespace {

constexpr absl::string_view kKinds[] = {"bool", "int",    "float",   "string",
                                        "ints", "floats", "strings", "dtype"};
static_assert(std::size(kKinds) == std::variant_size_v<AttrValue>);

bool SameBits(double a, double b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

bool SameValue(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const double* value = std::get_if<double>(&a)) {
    return SameBits(*value, std::get<double>(b));
  }
  if (const auto* values = std::get_if<std::vector<double>>(&a)) {
    const auto& others = std::get<std::vector<double>>(b);
    return std::equal(values->begin(), values->end(), others.begin(),
                      others.end(), SameBits);
  }
  return a == b;
}

}  // namespace

absl::string_view Name(AttrKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

size_t HashOf(const AttrValue& value) {
  const uint64_t kind = value.index();
  switch (KindOf(value)) {
    case AttrKind::kBool:
      return Mix(kind, *std::get_if<bool>(&value));
    case AttrKind::kInt:
      return Mix(kind, static_cast<uint64_t>(*std::get_if<int64_t>(&value)));
    case AttrKind::kFloat: {
      uint64_t bits;
      std::memcpy(&bits, std::get_if<double>(&value), sizeof(bits));
      return Mix(kind, bits);
    }
    case AttrKind::kDType:
      return Mix(kind, static_cast<uint64_t>(*std::get_if<DType>(&value)));
    default:
      return std::visit([&](const auto& v) { return absl::HashOf(kind, v); },
                        value);
  }
}

Attrs AttrTable::InternFrom(absl::Span<AttrList::value_type> list) {
  if (list.empty()) return Attrs();
  const auto it = lists_.lazy_emplace(AttrSpan(list), [&](const auto& add) {
    add(std::make_unique<const AttrList>(std::make_move_iterator(list.begin()),
                                         std::make_move_iterator(list.end())));
  });
  return Attrs(it->get());
}

size_t AttrTable::Hash::operator()(AttrSpan list) const {
  uint64_t hash = list.size();
  for (const auto& [index, value] : list) {
    hash = Mix(Mix(hash, static_cast<uint64_t>(index)), HashOf(value));
  }
  return hash;
}

bool AttrTable::Equal::Same(AttrSpan a, AttrSpan b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return x.first == y.first && SameValue(x.second, y.second);
      });
}

}  // namespace halftone
