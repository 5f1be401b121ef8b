#include "kernels/plugin/declared_attrs.h"

#include <string>

#include "graph/base/check.h"

namespace halftone {
namespace kernels {
namespace {

// Fills in what the value's kind has; its index is the kind's number.
struct Filler {
  HalftoneAttr* attr;
  void operator()(bool v) const { attr->i = v ? 1 : 0; }
  void operator()(int64_t v) const { attr->i = v; }
  void operator()(double v) const { attr->f = v; }
  void operator()(const std::string& v) const { attr->s = v.c_str(); }
  void operator()(const std::vector<int64_t>& v) const {
    attr->ints = v.data();
    attr->size = static_cast<int32_t>(v.size());
  }
  void operator()(const std::vector<double>& v) const {
    attr->floats = v.data();
    attr->size = static_cast<int32_t>(v.size());
  }
  void operator()(const std::vector<std::string>&) const { NotDeclared(); }
  void operator()(DType) const { NotDeclared(); }
  static void NotDeclared() {
    HT_CHECK(false, "a library declares no such attributes");
  }
};

int32_t KindFor(const AttrValue& value) {
  switch (KindOf(value)) {
    case AttrKind::kBool:
      return 0;
    case AttrKind::kInt:
      return 1;
    case AttrKind::kFloat:
      return 2;
    case AttrKind::kString:
      return 3;
    case AttrKind::kInts:
      return 4;
    default:
      return 5;
  }
}

}  // namespace

AttrValue ValueOf(const HalftoneAttr& attr) {
  switch (attr.kind) {
    case 0:
      return attr.i != 0;
    case 1:
      return attr.i;
    case 2:
      return attr.f;
    case 3:
      return std::string(attr.s);
    case 4:
      return std::vector<int64_t>(attr.ints, attr.ints + attr.size);
    default:
      return std::vector<double>(attr.floats, attr.floats + attr.size);
  }
}

AttrsForLibrary::AttrsForLibrary(
    const OpSchema& schema,
    const std::function<const AttrValue&(absl::string_view name)>& value) {
  for (const AttrSpec& spec : schema.attrs()) {
    const AttrValue& kept = values_.emplace_back(value(spec.name));
    HalftoneAttr& attr = attrs_.emplace_back();
    attr = HalftoneAttr{};
    attr.name = spec.name.c_str();
    attr.kind = KindFor(kept);
    std::visit(Filler{&attr}, kept);
  }
}

}  // namespace kernels
}  // namespace halftone
