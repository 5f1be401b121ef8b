// Windows that slide over 1, 2 or 3 spatial dims: of convolutions and pooling.
// Kernels use the parts that need no InferContext, so that the rules are
// written once. The dims are D, H, W; fewer are the last of them.
#ifndef HALFTONE_GRAPH_OPS_WINDOWS_H_
#define HALFTONE_GRAPH_OPS_WINDOWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/type.h"
#include "graph/schema/infer_context.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace ops {

// The window along one dim.
struct Window {
  int64_t kernel = 1, stride = 1, before = 0, after = 0, dilation = 1;
  // A last window that only partly overlaps the input counts (pooling):
  // wherever it starts, or inside the input or the padding before it alone.
  bool ceil = false, ceil_anywhere = false;
};
// Positions of the window; nullopt if it does not fit once, or if `in` is
// symbolic and the window does not keep it as it is.
std::optional<Dim> WindowOutput(const Dim& in, const Window& window);
// The least size on which the window has so many positions, and `more`; nullopt
// if that is not 1 or more, or if `positions` is symbolic and the window does
// not keep it.
std::optional<Dim> WindowInput(const Dim& positions, const Window& window,
                               int64_t more = 0);

// Of maximum pooling: an Argmax that says that a window has no element. Others
// are below it: the first maximum's place, in row-major order, among the
// elements of a window of ksize, of which there are at most so many; those in
// the padding count.
inline constexpr uint8_t kNoArgmax = 255;

// Attributes with a number for each spatial dim, checked for range.
struct WindowAttrs {
  std::vector<int64_t> strides, dilations;
  std::vector<int64_t> paddings;  // before and after, dim by dim

  // Along the i-th spatial dim.
  Window Along(int i, int64_t kernel) const;
};
// Paddings of each dim, or before and after each dim, as the latter.
std::vector<int64_t> FullPaddings(absl::Span<const int64_t> paddings,
                                  int spatial);
// Reads `strides`, `paddings` and, if the op has it, `dilations`.
absl::StatusOr<WindowAttrs> ReadWindowAttrs(const InferContext& c, int spatial);
// An attribute of an integer in [low, 2^31) for each spatial dim.
absl::StatusOr<std::vector<int64_t>> ReadSizes(const InferContext& c,
                                               absl::string_view attr,
                                               int spatial, int64_t low);

// ---- How they are called.

// "H, W": a letter for each spatial dim, each after `prefix`.
std::string SpatialLetters(int spatial, absl::string_view prefix = "");
// "H and W".
std::string SpatialAnd(int spatial, absl::string_view prefix = "");
// "height, width" and "top, bottom, left, right".
std::string SpatialNames(int spatial);
std::string SpatialSides(int spatial);
// "[N, C, H, W]", "[N, O, OH, OW]".
std::string ImageText(int spatial, absl::string_view channels = "C",
                      absl::string_view prefix = "");

// Adds `strides` and `paddings`, of ones and zeros.
OpSchema& AddWindowAttrs(OpSchema& schema, int spatial);

}  // namespace ops
}  // namespace halftone

#endif  // HALFTONE_GRAPH_OPS_WINDOWS_H_
