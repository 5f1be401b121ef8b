// Pools, and images in other sizes.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/export/onnx_rules.h"
#include "graph/ops/windows.h"

namespace halftone {
namespace onnx_export {
namespace {

bool IsMaximum(const SourceOp& op) {
  return !op.HasAttr("pooling_type") || op.String("pooling_type") == "max";
}

// ---- Windows that follow from the sizes.

struct Axis {
  int64_t in = 0, out = 0;
};

std::vector<Axis> Axes(SourceOp& op) {
  std::vector<Axis> axes;
  for (int i = 2; i < op.Rank("X"); ++i) {
    const Dim in = op.DimsOf("X")[i], out = op.OutType().dims[i];
    if (!in.is_constant()) op.Refuse("its spatial dims are the batch's");
    axes.push_back({in.coefficient(), out.coefficient()});
  }
  return axes;
}

// Along one axis: the windows cut out, reduced and joined.
std::string AdaptiveAlong(SourceOp& op, const std::string& x, int64_t dim,
                          const Axis& axis) {
  Builder& builder = op.builder();
  std::vector<std::string> parts;
  for (int64_t o = 0; o < axis.out; ++o) {
    const int64_t start = o * axis.in / axis.out;
    const int64_t end = ((o + 1) * axis.in + axis.out - 1) / axis.out;
    const std::string window = op.Node("Slice")
                                   .In(x)
                                   .In(builder.Ints({start}))
                                   .In(builder.Ints({end}))
                                   .In(builder.Ints({dim}))
                                   .Made();
    parts.push_back(op.Node(IsMaximum(op) ? "ReduceMax" : "ReduceMean")
                        .In(window)
                        .Attr("axes", IntList{dim})
                        .Made());
  }
  NodeMaker node = op.Node("Concat");
  for (const std::string& part : parts) node.In(part);
  return node.Attr("axis", dim).Made();
}

void AdaptivePool(SourceOp& op) {
  const std::vector<Axis> axes = Axes(op);
  const char* const pool = IsMaximum(op) ? "MaxPool" : "AveragePool";
  IntList kernel;
  for (const Axis& axis : axes) {
    if (axis.out > 0 && axis.in % axis.out == 0) {
      kernel.push_back(axis.in / axis.out);
    }
  }
  if (kernel.size() == axes.size()) {
    return op.Node(pool)
        .In(op.In("X"))
        .Attr("kernel_shape", kernel)
        .Attr("strides", kernel)
        .Out();
  }
  std::string made = op.In("X");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].in == axes[i].out) continue;
    made = AdaptiveAlong(op, made, static_cast<int64_t>(i) + 2, axes[i]);
  }
  op.Same(made);
}

// ---- Windows that are given.

struct Borders {
  IntList pads;          // what ours has: before all dims, then after all
  IntList beyond;        // with what a last window reaches beyond those
  bool outside = false;  // a window may lie outside the image altogether
};

Borders BordersOf(SourceOp& op) {
  const std::vector<Axis> axes = Axes(op);
  const int spatial = static_cast<int>(axes.size());
  const IntList full = ops::FullPaddings(op.Ints("paddings"), spatial);
  Borders borders;
  for (int i = 0; i < spatial; ++i) borders.pads.push_back(full[2 * i]);
  borders.beyond = borders.pads;
  for (int i = 0; i < spatial; ++i) {
    const int64_t kernel = op.Ints("ksize")[i], before = full[2 * i];
    const int64_t reach = (axes[i].out - 1) * op.Ints("strides")[i] + kernel -
                          axes[i].in - before;
    borders.pads.push_back(full[2 * i + 1]);
    borders.beyond.push_back(std::max(full[2 * i + 1], reach));
    borders.outside |= before >= kernel || borders.beyond.back() >= kernel;
  }
  return borders;
}

// X within a border of N, C and the spatial dims.
std::string Bordered(SourceOp& op, const IntList& pads, double value) {
  IntList all = {0, 0};
  const size_t spatial = pads.size() / 2;
  all.insert(all.end(), pads.begin(), pads.begin() + spatial);
  all.insert(all.end(), {0, 0});
  all.insert(all.end(), pads.begin() + spatial, pads.end());
  return op.Node("Pad")
      .In(op.In("X"))
      .In(op.builder().Ints(all))
      .In(op.builder().Number(value, op.dtype("X")))
      .Made();
}

// No ceil_mode: readers differ in which last windows count. What it reaches
// beyond the image is a border that is said.
void Pool(SourceOp& op, const Rule&) {
  const bool maximum = IsMaximum(op);
  if (op.Bool("global_pooling")) {
    return op.Node(maximum ? "GlobalMaxPool" : "GlobalAveragePool")
        .In(op.In("X"))
        .Out();
  }
  if (op.Bool("adaptive")) return AdaptivePool(op);
  const Borders borders = BordersOf(op);
  const IntList none(borders.pads.size(), 0);
  std::string x = op.In("X");
  IntList pads = borders.beyond;
  const bool counts_border = !maximum && !op.Bool("exclusive");
  if (borders.outside && maximum) {
    // No reader takes a border as wide as the window.
    x = Bordered(op, pads, std::numeric_limits<float>::lowest());
    pads = none;
  } else if (borders.outside) {
    op.Refuse("a border as wide as its window");
  } else if (counts_border && borders.pads != borders.beyond) {
    x = Bordered(op, borders.pads, 0);
    for (size_t i = 0; i < pads.size(); ++i) pads[i] -= borders.pads[i];
  }
  NodeMaker node = op.Node(maximum ? "MaxPool" : "AveragePool");
  node.In(x).Attr("kernel_shape", op.Ints("ksize"));
  node.Attr("strides", op.Ints("strides")).Attr("pads", pads);
  if (counts_border && borders.pads == borders.beyond) {
    node.Attr("count_include_pad", int64_t{1});
  }
  node.Out();
}

// ---- Other sizes.

// Sizes, or scales where ours has those: N and C stay.
void AddSizes(SourceOp& op, NodeMaker* node) {
  const int spatial = op.Rank("X") - 2;
  std::vector<double> scales = op.Floats("scale");
  if (!scales.empty()) {
    scales.resize(spatial, scales[0]);
    scales.insert(scales.begin(), {1, 1});
    node->In(op.builder().Reals(scales, {spatial + 2}, DType::kF32));
    return;
  }
  IntList sizes;
  for (const Axis& axis : Axes(op)) sizes.push_back(axis.out);
  Builder& builder = op.builder();
  const std::string kept = op.Node("Slice")
                               .In(op.Make("Shape", op.In("X")))
                               .In(builder.Ints({0}))
                               .In(builder.Ints({2}))
                               .Made();
  const std::string all = op.Node("Concat")
                              .In(kept)
                              .In(builder.Ints(sizes))
                              .Attr("axis", int64_t{0})
                              .Made();
  node->In("").In(all);
}

// A single element on the cubics through several is ours, and Paddle's, half an
// element before the first.
void RefuseBeforeTheFirst(SourceOp& op) {
  for (const Axis& axis : Axes(op)) {
    if (axis.out != 1 || axis.in == 1) continue;
    op.Refuse(absl::StrCat("a single element of ", axis.in,
                           " is at -0.5, of which ONNX's Resize has no form; "
                           "use bilinear_interp_v2"
                           " or align_corners, or average with pool2d"));
  }
}

void Resize(SourceOp& op, const Rule&) {
  const bool nearest = absl::StartsWith(op.type(), "nearest");
  const bool cubic = absl::StartsWith(op.type(), "bicubic");
  // Of one element ours takes the first, as pytorch_half_pixel does.
  std::string where = "asymmetric";
  if (cubic || (!nearest && op.Int("align_mode") == 0)) {
    where = "pytorch_half_pixel";
  }
  if (op.Bool("align_corners")) {
    where = "align_corners";
  } else if (cubic) {
    RefuseBeforeTheFirst(op);
  }
  NodeMaker node = op.Node("Resize");
  node.In(op.In("X")).In("");
  AddSizes(op, &node);
  node.Attr("mode", std::string(nearest ? "nearest"
                                : cubic ? "cubic"
                                        : "linear"));
  node.Attr("coordinate_transformation_mode", where);
  if (nearest) {
    node.Attr(
        "nearest_mode",
        std::string(op.Bool("align_corners") ? "round_prefer_ceil" : "floor"));
  }
  node.Out();
}

void GridSample(SourceOp& op, const Rule&) {
  op.Node("GridSample")
      .In(op.In("X"))
      .In(op.In("Grid"))
      .Attr("align_corners", int64_t{op.Bool("align_corners")})
      .Attr("mode", op.String("mode"))
      .Attr("padding_mode", op.String("padding_mode"))
      .Out("Output");
}

}  // namespace

const std::vector<Rule>& WindowRules() {
  static const auto& rules = *new std::vector<Rule>{
      {"bicubic_interp_v2", Resize},
      {"bilinear_interp_v2", Resize},
      {"grid_sampler", GridSample},
      {"linear_interp_v2", Resize},
      {"max_pool2d_with_index", Pool},
      {"max_pool3d_with_index", Pool},
      {"nearest_interp_v2", Resize},
      {"pool1d", Pool},
      {"pool2d", Pool},
      {"pool3d", Pool},
      {"trilinear_interp_v2", Resize},
  };
  return rules;
}

}  // namespace onnx_export
}  // namespace halftone
