#include "graph/ops/windows.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/ops/infer_helpers.h"

namespace halftone {
namespace ops {
namespace {

// Larger windows and images are refused, so that sums cannot overflow.
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

constexpr const char* kLetters[] = {"D", "H", "W"};
constexpr const char* kNames[] = {"depth", "height", "width"};
constexpr const char* kSides[] = {"front, back", "top, bottom", "left, right"};

// The last of three, one for each spatial dim.
absl::Span<const char* const> Last(absl::Span<const char* const> three,
                                   int spatial) {
  return three.subspan(three.size() - spatial);
}

std::vector<std::string> Prefixed(int spatial, absl::string_view prefix) {
  std::vector<std::string> letters;
  for (const char* letter : Last(kLetters, spatial)) {
    letters.push_back(absl::StrCat(prefix, letter));
  }
  return letters;
}

}  // namespace

std::optional<Dim> WindowOutput(const Dim& in, const Window& window) {
  if (window.kernel < 1 || window.kernel > kMaxExtent) return std::nullopt;
  const int64_t extent = window.dilation * (window.kernel - 1) + 1;
  const int64_t padding = window.before + window.after;
  if (!in.is_constant()) {
    if (window.stride != 1 || padding != extent - 1) return std::nullopt;
    return in;
  }
  const int64_t size = in.coefficient();
  if (size > kMaxExtent || size + padding < extent) return std::nullopt;
  const int64_t room = size + padding - extent;
  int64_t count = room / window.stride + 1;
  if (window.ceil && room % window.stride != 0 &&
      (window.ceil_anywhere || count * window.stride < size + window.before)) {
    ++count;
  }
  return Dim(count);
}

std::optional<Dim> WindowInput(const Dim& positions, const Window& window,
                               int64_t more) {
  if (window.kernel < 1 || window.kernel > kMaxExtent) return std::nullopt;
  const int64_t extent = window.dilation * (window.kernel - 1) + 1;
  const int64_t padding = window.before + window.after;
  if (!positions.is_constant()) {
    if (window.stride != 1 || padding != extent - 1) return std::nullopt;
    return positions;
  }
  const int64_t count = positions.coefficient();
  if (count < 1 || count > kMaxExtent) return std::nullopt;
  const int64_t size = (count - 1) * window.stride + extent - padding + more;
  if (size < 1 || size > kMaxExtent) return std::nullopt;
  return Dim(size);
}

Window WindowAttrs::Along(int i, int64_t kernel) const {
  Window window;
  window.kernel = kernel;
  window.stride = strides[i];
  window.before = paddings[2 * i];
  window.after = paddings[2 * i + 1];
  window.dilation = dilations[i];
  return window;
}

std::vector<int64_t> FullPaddings(absl::Span<const int64_t> paddings,
                                  int spatial) {
  if (static_cast<int>(paddings.size()) == 2 * spatial) {
    return {paddings.begin(), paddings.end()};
  }
  std::vector<int64_t> full;
  for (const int64_t padding : paddings) full.insert(full.end(), 2, padding);
  return full;
}

absl::StatusOr<std::vector<int64_t>> ReadSizes(const InferContext& c,
                                               absl::string_view attr,
                                               int spatial, int64_t low) {
  const std::vector<int64_t>& values = c.Ints(attr);
  const auto in_range = [low](int64_t v) {
    return v >= low && v <= kMaxExtent;
  };
  if (static_cast<int>(values.size()) == spatial &&
      std::all_of(values.begin(), values.end(), in_range)) {
    return values;
  }
  return AttrMismatch(
      c, attr,
      absl::StrCat(spatial, spatial == 1 ? " integer" : " integers", " (",
                   SpatialNames(spatial), ") from ", low, " up"));
}

absl::StatusOr<WindowAttrs> ReadWindowAttrs(const InferContext& c,
                                            int spatial) {
  WindowAttrs attrs;
  HT_ASSIGN_OR_RETURN(attrs.strides, ReadSizes(c, "strides", spatial, 1));
  attrs.dilations.assign(spatial, 1);
  if (c.schema().FindAttr("dilations") >= 0) {
    HT_ASSIGN_OR_RETURN(attrs.dilations, ReadSizes(c, "dilations", spatial, 1));
  }
  const std::vector<int64_t>& paddings = c.Ints("paddings");
  const int count = static_cast<int>(paddings.size());
  const auto in_range = [](int64_t p) { return p >= 0 && p <= kMaxExtent; };
  if ((count != spatial && count != 2 * spatial) ||
      !std::all_of(paddings.begin(), paddings.end(), in_range)) {
    return AttrMismatch(
        c, "paddings",
        absl::StrCat(spatial, " (", SpatialNames(spatial), ") or ", 2 * spatial,
                     " (", SpatialSides(spatial), ") integers from 0 up"));
  }
  attrs.paddings = FullPaddings(paddings, spatial);
  return attrs;
}

std::string SpatialLetters(int spatial, absl::string_view prefix) {
  return absl::StrJoin(Prefixed(spatial, prefix), ", ");
}

std::string SpatialAnd(int spatial, absl::string_view prefix) {
  std::vector<std::string> letters = Prefixed(spatial, prefix);
  const std::string last = letters.back();
  letters.pop_back();
  if (letters.empty()) return last;
  return absl::StrCat(absl::StrJoin(letters, ", "), " and ", last);
}

std::string SpatialNames(int spatial) {
  return absl::StrJoin(Last(kNames, spatial), ", ");
}

std::string SpatialSides(int spatial) {
  return absl::StrJoin(Last(kSides, spatial), ", ");
}

std::string ImageText(int spatial, absl::string_view channels,
                      absl::string_view prefix) {
  return absl::StrCat("[N, ", channels, ", ", SpatialLetters(spatial, prefix),
                      "]");
}

OpSchema& AddWindowAttrs(OpSchema& schema, int spatial) {
  return schema
      .Attr("strides", std::vector<int64_t>(spatial, 1), SpatialNames(spatial))
      .Attr(
          "paddings", std::vector<int64_t>(spatial, 0),
          absl::StrCat(SpatialNames(spatial), "; or ", SpatialSides(spatial)));
}

}  // namespace ops
}  // namespace halftone
