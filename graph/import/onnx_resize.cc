// Images at the places of a grid, and images of another size: an interpolation
// of ours where there is one; else, along each axis, a product with a matrix of
// weights that is known at import, or, of the nearest elements, a choice.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/functions.h"
#include "graph/import/onnx_ops.h"
#include "graph/import/onnx_writer.h"
#include "graph/import/paddle_program.h"

namespace halftone {
namespace {

using Rule = OnnxRule;
using IntList = std::vector<int64_t>;

struct Manner {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, beyond = 0;
  bool excludes = false, antialias = false;
};

// One axis.
struct Stretch {
  int64_t from = 0, to = 0;
  bool sized = false;  // the size is given, and the scale follows from it
  float scale = 1;
  double start = 0, end = 1;  // of a region of interest
};

// Where element `at` of the output lies in the input: in f32, operation by
// operation as ONNX Runtime computes it, or elements that lie between two would
// be rounded to another one.
float Source(const Stretch& s, const std::string& how, int64_t at) {
  const float x = static_cast<float>(at);
  const float last = static_cast<float>(s.from - 1);
  const float to = static_cast<float>(s.to);
  if (how == "asymmetric") return x / s.scale;
  // By the whole size, whatever was asked for.
  if (how == "align_corners") return s.to == 1 ? 0 : x * last / (to - 1);
  if (how == "pytorch_half_pixel" && s.to == 1) return 0;
  if (how == "tf_half_pixel_for_nn") return (x + 0.5f) / s.scale;
  if (how == "tf_crop_and_resize") {
    const float start = static_cast<float>(s.start);
    const float end = static_cast<float>(s.end);
    if (s.to == 1) return 0.5f * (start + end) * last;
    return start * last + x * (end - start) * last / (to - 1);
  }
  if (how == "half_pixel_symmetric") {
    // The output's size was rounded: it stays in the middle. Half in f64.
    const float from = static_cast<float>(s.from);
    const float shift = from / 2 * (1 - to / (s.scale * from));
    return static_cast<float>(shift + (x + 0.5) / s.scale - 0.5);
  }
  return (x + 0.5f) / s.scale - 0.5f;
}

// The same, no further from the image than says something.
double Place(const Stretch& s, const std::string& how, int64_t at) {
  const double x = Source(s, how, at), most = 4.0 * s.from + 8;
  return x >= -most && x <= most ? x : (x > 0 ? most : -most);
}

double Cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

int64_t NearestOf(double x, const std::string& how) {
  // What was rounded to beside the middle of two counts as the middle, within
  // the bound of ONNX Runtime.
  const double middle = std::floor(x) + 0.5;
  if (std::abs(x - middle) <= 1e-6 && how.rfind("round", 0) == 0) x = middle;
  double at = std::floor(x);
  if (how == "ceil") at = std::ceil(x);
  if (how == "round_prefer_floor") at = std::ceil(x - 0.5);
  if (how == "round_prefer_ceil") at = std::floor(x + 0.5);
  return static_cast<int64_t>(at);
}

// How many elements of the input one of the output is, as PyTorch rounds it: of
// the scale that was written, which f32 holds only nearly.
float PerElement(const Stretch& s) {
  if (s.sized) return static_cast<float>(s.from) / static_cast<float>(s.to);
  return static_cast<float>(1 / Shortest(s.scale));
}

// The element of the input that element `at` of the output is.
int64_t Nearest(const Stretch& s, const Manner& manner, int64_t at) {
  double x = Place(s, manner.coordinates, at);
  // So PyTorch writes its own, which multiplies: at scales like 2.2 elements
  // between two would fall to the other one by the division of ONNX Runtime.
  if (manner.coordinates == "asymmetric" && manner.nearest == "floor") {
    x = std::min(static_cast<float>(at) * PerElement(s),
                 static_cast<float>(s.from));
  }
  const int64_t nearest = NearestOf(x, manner.nearest);
  return std::min(std::max<int64_t>(nearest, 0), s.from - 1);
}

// Row i: what output i takes of each input, in f64.
std::vector<double> Weights(const Stretch& s, const Manner& manner) {
  std::vector<double> weights(s.from * s.to, 0);
  const double shrink = manner.antialias ? std::min(1.0f, s.scale) : 1.0;
  const bool cubic = manner.mode == "cubic";
  const double reach = (cubic ? 2 : 1) / shrink;
  for (int64_t i = 0; i < s.to; ++i) {
    double* const row = &weights[i * s.from];
    const double x = Place(s, manner.coordinates, i);
    const int64_t first = static_cast<int64_t>(std::ceil(x - reach));
    const int64_t last = static_cast<int64_t>(std::floor(x + reach));
    double sum = 0;
    for (int64_t j = first; j <= last; ++j) {
      const double away = (static_cast<double>(j) - x) * shrink;
      const double weight =
          cubic ? Cubic(away, manner.cubic) : std::max(0.0, 1 - std::abs(away));
      const bool outside = j < 0 || j >= s.from;
      if (outside && manner.excludes) continue;
      row[std::min(std::max<int64_t>(j, 0), s.from - 1)] += weight;
      sum += weight;
    }
    for (int64_t j = 0; j < s.from && sum != 0; ++j) row[j] /= sum;
  }
  return weights;
}

// X with `axis` stretched.
std::string Along(OnnxNode& node, const std::string& x, int axis,
                  const Stretch& s, const Manner& manner) {
  if (node.failed()) return "";
  OnnxConstant table;
  if (manner.mode == "nearest") {
    table.dtype = DType::kI64;
    table.dims = {s.to};
    for (int64_t i = 0; i < s.to; ++i) {
      table.ints.emplace_back(Nearest(s, manner, i));
    }
    return node.Op("gather")
        .In("X", x)
        .In("Index", node.Parameter(std::move(table)))
        .Attr("axis", static_cast<int64_t>(axis))
        .Made();
  }
  if (s.to > (int64_t{1} << 22) / s.from) {
    node.Refuse("a size", " beyond bounds");
    return "";
  }
  table.dtype = DType::kF32;
  table.dims = {s.to, s.from};
  for (const double weight : Weights(s, manner)) {
    table.reals.push_back(static_cast<float>(weight));
  }
  const std::string matrix = node.Parameter(std::move(table));
  const int rank = node.TypeOf(x).rank();
  IntList order(rank);
  for (int i = 0; i < rank; ++i) order[i] = i;
  std::swap(order[axis], order[rank - 1]);
  const auto turned = [&](const std::string& value) {
    if (axis == rank - 1) return value;
    return node.Op("transpose").In("X", value).Attr("axis", order).Made();
  };
  const std::string product = node.Op("matmul")
                                  .In("X", turned(x))
                                  .In("Y", matrix)
                                  .Attr("trans_y", true)
                                  .Made();
  return turned(product);
}

// The elements of an input that is there and known; empty: none.
std::vector<double> Reals(OnnxNode& node, int input) {
  const OnnxConstant* const known = node.Known(input);
  if (known == nullptr || !known->is_float()) return {};
  return known->reals;
}

bool IsBeyond(const Stretch& s, const Manner& manner, int64_t at) {
  const float x = Source(s, manner.coordinates, at);
  return x < 0 || x > static_cast<float>(s.from - 1);
}

// Of a region of interest: a value of its own for what lies outside the image.
std::string Outside(OnnxNode& node, const std::string& x,
                    const std::vector<Stretch>& axes, const Manner& manner) {
  std::string made = x;
  for (size_t k = 0; k < axes.size() && !node.failed(); ++k) {
    OnnxConstant beyond;
    beyond.dtype = DType::kBool;
    beyond.dims.assign(axes.size() - k, 1);
    beyond.dims[0] = axes[k].to;
    for (int64_t i = 0; i < axes[k].to; ++i) {
      beyond.ints.emplace_back(IsBeyond(axes[k], manner, i));
    }
    if (axes[k].to == axes[k].from && axes[k].start == 0 && axes[k].end == 1) {
      continue;
    }
    made = node.Op("where")
               .In("Condition", node.Parameter(std::move(beyond)))
               .In("X", node.Number(manner.beyond))
               .In("Y", made)
               .Made();
  }
  return made;
}

// An image whose size a scale leaves as it is stays itself, as in ONNX Runtime
// and PyTorch; not so PyTorch's cubics. With antialias each axis does.
void KeepWhatStays(const Manner& manner, std::vector<Stretch>* axes) {
  if (manner.coordinates == "tf_crop_and_resize") return;
  bool all = manner.mode != "cubic" || manner.excludes ||
             manner.coordinates != "half_pixel";
  for (const Stretch& s : *axes) all = all && s.to == s.from;
  for (Stretch& s : *axes) {
    if (s.to == s.from && (all || manner.antialias)) s.scale = 1;
  }
}

// Sizes from scales or as they are given, for the axes that are named.
std::vector<Stretch> Stretches(OnnxNode& node, const Dims& dims,
                               const Manner& manner) {
  const int rank = static_cast<int>(dims.size());
  const bool old = node.type() == "Upsample" || node.inputs() == 2;
  std::vector<double> scales = Reals(node, old ? 1 : 2);
  if (node.HasAttr("scales")) scales = node.Floats("scales");
  const bool sized = node.Has(3);
  const OnnxConstant* const wanted = sized ? node.Known(3) : nullptr;
  IntList axes(rank);
  for (int i = 0; i < rank; ++i) axes[i] = i;
  axes = node.Ints("axes", axes);
  const size_t count = wanted != nullptr ? wanted->ints.size() : scales.size();
  if (node.Has(1) && !old && manner.coordinates == "tf_crop_and_resize" &&
      Reals(node, 1).size() != 2 * axes.size()) {
    node.Refuse("input 1", ": expected a known region of interest");
  }
  if (count != axes.size() || count == 0) {
    node.Refuse("sizes", ": expected known ones, or known scales");
  }
  const std::string policy = node.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") node.Refuse("attribute keep_aspect_ratio_policy");
  std::vector<Stretch> all(rank);
  for (int i = 0; i < rank; ++i) {
    if (dims[i].is_constant()) {
      all[i].from = all[i].to = dims[i].coefficient();
    }
  }
  const std::vector<double> region =
      manner.coordinates == "tf_crop_and_resize" && !old
          ? Reals(node, 1)
          : std::vector<double>();
  for (size_t k = 0; k < axes.size() && !node.failed(); ++k) {
    const int64_t axis = node.Axis(axes[k], rank);
    const bool open = !dims[axis].is_constant();
    const Dim was(node.graph().batch_was());
    if (open && (wanted != nullptr
                     ? wanted->ints[k] == dims[axis] || wanted->ints[k] == was
                     : scales[k] == 1)) {
      continue;
    }
    Stretch& s = all[axis];
    const bool known =
        !open && (wanted == nullptr ||
                  (!wanted->is_float() && wanted->ints[k].is_constant()));
    if (!known) {
      node.Refuse("the batch is resized");
      break;
    }
    if (wanted != nullptr) {
      s.to = wanted->ints[k].coefficient();
      s.scale = static_cast<float>(s.to) / static_cast<float>(s.from);
      s.sized = true;
    } else {
      s.scale = static_cast<float>(scales[k]);
      // The product is rounded to f32, too, as in ONNX Runtime: 10 by 1.4,
      // which f32 has a little below, are 14.
      s.to = s.scale > 0 && s.scale < 1e6f
                 ? static_cast<int64_t>(
                       std::floor(static_cast<float>(s.from) * s.scale))
                 : 0;
    }
    if (!region.empty()) {
      s.start = region[k];
      s.end = region[k + axes.size()];
    }
    if (s.to < 1 || s.to > 1 << 20) node.Refuse("a size", " beyond bounds");
  }
  KeepWhatStays(manner, &all);
  return all;
}

// Whether ours puts the elements of an axis where the node does, of sizes or of
// scales. Ours knows neither other rules for the nearest one nor one place that
// is no element's.
bool IsOurs(const Stretch& s, const Manner& manner, bool sized) {
  const bool corners = manner.coordinates == "align_corners";
  if (manner.mode != "nearest") {
    const bool one = s.to == 1 && s.from > 1;
    return corners || manner.coordinates == "asymmetric" ||
           (manner.coordinates == "pytorch_half_pixel" &&
            !(one && manner.mode == "cubic")) ||
           (manner.coordinates == "half_pixel" && !one);
  }
  if (corners
          ? manner.nearest != "round_prefer_ceil"
          : manner.coordinates != "asymmetric" || manner.nearest != "floor") {
    return false;
  }
  // Ours multiplies in f32, as Paddle does: elements between two may fall to
  // the other one.
  const float from = static_cast<float>(s.from), to = static_cast<float>(s.to);
  const float ratio = s.to == 1 ? 0
                      : corners ? (from - 1) / (to - 1)
                      : sized   ? from / to
                                : 1 / s.scale;
  for (int64_t i = 0; i < s.to; ++i) {
    const float at = ratio * static_cast<float>(i) + (corners ? 0.5f : 0.0f);
    const int64_t ours = std::min(static_cast<int64_t>(at), s.from - 1);
    if (ours != Nearest(s, manner, i)) return false;
  }
  return true;
}

// As an op of ours; false: no such op computes it.
bool Interpolated(OnnxNode& node, const std::string& x,
                  const std::vector<Stretch>& axes, const Manner& manner) {
  const int spatial = static_cast<int>(axes.size()) - 2;
  const bool cubic = manner.mode == "cubic";
  if (spatial < 1 || spatial > 3 || manner.antialias || manner.excludes) {
    return false;
  }
  // Elements of ours lie in the middle of their cells, or at the corners.
  if (cubic && (spatial != 2 || manner.cubic != -0.75 ||
                manner.coordinates == "asymmetric")) {
    return false;
  }
  bool sized = true, changes = false;  // whether sizes say as much as scales
  for (size_t i = 0; i < axes.size(); ++i) {
    const Stretch& s = axes[i];
    const bool stays = s.to == s.from && s.scale == 1;
    changes = changes || !stays;
    if (i < 2 ? !stays : s.from == 0) return false;
    if (i < 2) continue;
    sized = sized && PerElement(s) ==
                         static_cast<float>(s.from) / static_cast<float>(s.to);
  }
  // Places between corners are those of sizes.
  sized = sized || manner.coordinates == "align_corners";
  for (int i = 0; i < spatial; ++i) {
    if (!IsOurs(axes[2 + i], manner, sized)) return false;
  }
  if (!changes) return false;
  constexpr const char* kLinear[] = {"linear", "bilinear", "trilinear"};
  const bool nearest = manner.mode == "nearest";
  const char* const manner_of_ours = nearest ? "nearest"
                                     : cubic ? "bicubic"
                                             : kLinear[spatial - 1];
  OnnxOp op = node.Op(absl::StrCat(manner_of_ours, "_interp_v2"));
  op.In("X", x);
  std::vector<double> scales;
  for (int i = 0; i < spatial; ++i) {
    const Stretch& s = axes[2 + i];
    constexpr const char* kSizes[] = {"out_d", "out_h", "out_w"};
    if (sized) op.Attr(kSizes[3 - spatial + i], s.to);
    scales.push_back(Shortest(s.scale));
  }
  if (!sized) op.Attr("scale", scales);
  op.Attr("align_corners", manner.coordinates == "align_corners");
  const bool at_corner = nearest || manner.coordinates == "asymmetric";
  op.Attr("align_mode", int64_t{at_corner}).Out();
  return true;
}

void Resize(OnnxNode& node, const Rule&) {
  const std::string x = node.In(0);
  Manner manner;
  manner.mode = node.String("mode", "nearest");
  const bool old = node.type() == "Upsample" || node.inputs() == 2;
  manner.coordinates = node.String("coordinate_transformation_mode",
                                   old ? "asymmetric" : "half_pixel");
  manner.nearest =
      node.String("nearest_mode", old ? "floor" : "round_prefer_floor");
  manner.cubic = node.Float("cubic_coeff_a", -0.75);
  manner.beyond = node.Float("extrapolation_value", 0);
  manner.excludes = node.Int("exclude_outside", 0) != 0;
  manner.antialias = node.Int("antialias", 0) != 0;
  if (manner.mode == "bilinear") manner.mode = "linear";  // Upsample's first
  if (manner.mode != "nearest" && manner.mode != "linear" &&
      manner.mode != "cubic") {
    node.Refuse("attribute mode", " = " + manner.mode);
  }
  if (node.failed()) return;
  const std::vector<Stretch> all = Stretches(node, node.TypeOf(x).dims, manner);
  if (node.failed() || Interpolated(node, x, all, manner)) return;
  std::string made = x;
  for (size_t i = 0; i < all.size() && !node.failed(); ++i) {
    const Stretch& s = all[i];
    if (s.to == s.from && s.start == 0 && s.end == 1 && s.scale == 1) continue;
    made = Along(node, made, static_cast<int>(i), s, manner);
  }
  if (manner.coordinates == "tf_crop_and_resize") {
    made = Outside(node, made, all, manner);
  }
  node.Same(0, made);
}

// Of images of two dims, between elements along straight lines.
void GridSample(OnnxNode& node, const Rule&) {
  std::string mode = node.String("mode", "bilinear");
  const std::string padding = node.String("padding_mode", "zeros");
  const std::string x = node.In(0), grid = node.In(1);
  if (node.failed()) return;
  if (mode == "linear") mode = "bilinear";  // as it is called from opset 20 on
  if (mode != "bilinear" && mode != "nearest") {
    return node.Refuse("attribute mode", " = " + mode);
  }
  if (node.TypeOf(x).rank() != 4) return node.Refuse("images of three dims");
  node.Op("grid_sampler")
      .In("X", x)
      .In("Grid", grid)
      .Attr("align_corners", node.Int("align_corners", 0) != 0)
      .Attr("mode", mode)
      .Attr("padding_mode", padding)
      .Out("Output");
}

// Of images of two dims.
void Affine(OnnxNode& node, const Rule&) {
  const std::string theta = node.In(0);
  const OnnxConstant* const sizes = node.Known(1);
  if (node.failed()) return;
  const Dims& dims = node.TypeOf(theta).dims;
  if (dims.size() != 3 || dims[1] != Dim(2) || dims[2] != Dim(3)) {
    return node.Refuse("theta of dims other than [N, 2, 3]");
  }
  int64_t size[2] = {};
  const bool has_sizes = sizes != nullptr && sizes->ints.size() == 4;
  for (int i = 0; i < 2 && has_sizes; ++i) {
    const Dim& dim = sizes->ints[2 + i];
    size[i] = dim.is_constant() ? dim.coefficient() : 0;
  }
  if (!HasAffineGrid(size[0], size[1])) {
    return node.Refuse(
        "sizes other than [N, C, height, width] below 2^24 pixels");
  }
  OnnxWriter ops(&node);
  node.Same(0, AffineGrid(ops, theta, dims[0], size[0], size[1],
                          node.Int("align_corners", 0) != 0));
}

}  // namespace

const std::vector<OnnxRule>& OnnxResizeRules() {
  static const auto& rules = *new std::vector<OnnxRule>{
      {"AffineGrid", Affine},
      {"GridSample", GridSample},
      {"Resize", Resize},
      {"Upsample", Resize},
  };
  return rules;
}

}  // namespace halftone
