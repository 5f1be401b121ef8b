// Typed attributes of ops.
#ifndef HALFTONE_GRAPH_IR_ATTR_H_
#define HALFTONE_GRAPH_IR_ATTR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype_fwd.h"

namespace halftone {

// The order of the alternatives is that of AttrKind. Floats are held as
// doubles; an op casts them to f32 where it computes.
using AttrValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                 std::vector<double>, std::vector<std::string>, DType>;

enum class AttrKind : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings,
  kDType,
};
inline AttrKind KindOf(const AttrValue& v) {
  return static_cast<AttrKind>(v.index());
}
absl::string_view Name(AttrKind kind);
// Equal within a process for values that print alike.
size_t HashOf(const AttrValue& value);

// Explicitly set attributes by their index in the schema, sorted; everything
// else has the schema's default.
using AttrList = std::vector<std::pair<int16_t, AttrValue>>;
using AttrSpan = absl::Span<const AttrList::value_type>;

// Sets the attribute of that index in a list, an AttrList or alike; those that
// come in order are not searched for.
template <typename List>
void SetAttrAt(int index, AttrValue value, List* list) {
  if (list->empty() || list->back().first < index) {
    list->emplace_back(static_cast<int16_t>(index), std::move(value));
    return;
  }
  const auto at = std::lower_bound(
      list->begin(), list->end(), index,
      [](const auto& attr, int wanted) { return attr.first < wanted; });
  if (at->first == index) {
    at->second = std::move(value);
  } else {
    list->emplace(at, static_cast<int16_t>(index), std::move(value));
  }
}

// An op's attributes: a list that its program holds once, however many ops have
// it (AttrTable). So it never changes, and equal lists of a program are one.
class Attrs {
 public:
  Attrs() = default;
  // `list` outlives what is made of it; null: no attributes.
  explicit Attrs(const AttrList* list) : list_(list) {}
  const AttrList::value_type* data() const {
    return list_ == nullptr ? nullptr : list_->data();
  }
  size_t size() const { return list_ == nullptr ? 0 : list_->size(); }
  bool empty() const { return list_ == nullptr; }
  const AttrList::value_type* begin() const { return data(); }
  const AttrList::value_type* end() const { return data() + size(); }
  const AttrList::value_type& operator[](size_t i) const { return data()[i]; }
  // The same for equal lists of one program.
  const void* identity() const { return list_; }
  friend bool operator==(Attrs a, Attrs b) { return a.list_ == b.list_; }

 private:
  const AttrList* list_ = nullptr;
};

// The lists of a program. Lists are equal if they print alike: floats by their
// bits.
class AttrTable {
 public:
  Attrs Intern(AttrList list) { return InternFrom(absl::MakeSpan(list)); }
  // The same of a list that lies elsewhere: what is new is moved out of it.
  Attrs InternFrom(absl::Span<AttrList::value_type> list);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(AttrSpan list) const;
    size_t operator()(const std::unique_ptr<const AttrList>& list) const {
      return (*this)(*list);
    }
  };
  struct Equal {
    using is_transparent = void;
    static AttrSpan List(AttrSpan list) { return list; }
    static AttrSpan List(const std::unique_ptr<const AttrList>& list) {
      return *list;
    }
    static bool Same(AttrSpan a, AttrSpan b);
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return Same(List(a), List(b));
    }
  };
  absl::flat_hash_set<std::unique_ptr<const AttrList>, Hash, Equal> lists_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_ATTR_H_
