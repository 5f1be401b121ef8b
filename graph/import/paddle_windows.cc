// Convolutions and pooling: paddings in numbers, windows counted as Paddle
// does; windows as columns.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/import/paddle_parts.h"
#include "graph/import/paddle_rules.h"

namespace halftone {
namespace {

using IntList = std::vector<int64_t>;
using paddle::OpDesc;
using paddle::VarType;

// The last `count` dims of a variable, all known; empty: they are not.
IntList Sizes(const std::string& name, size_t count, PaddleScope& scope) {
  const paddle::VarDesc* const var = scope.Variable(name);
  if (var == nullptr) return {};
  const auto& dims = var->type().lod_tensor().tensor().dims();
  if (dims.size() < static_cast<int>(count)) return {};
  IntList sizes(dims.end() - count, dims.end());
  const auto unknown = [](int64_t size) { return size < 1 || size > 1 << 24; };
  if (std::any_of(sizes.begin(), sizes.end(), unknown)) return {};
  return sizes;
}

// Paddings in numbers for SAME (an output for each stride, the rest of the
// padding behind) and VALID (none). Returns what is wrong.
std::string ExplicitPaddings(const std::string& input, const IntList& window,
                             PaddleScope& scope, OpDesc* op) {
  const std::string how = StringAttr(*op, "padding_algorithm", "EXPLICIT");
  if (how == "EXPLICIT") return "";
  IntList paddings(2 * window.size(), 0);
  if (how == "SAME") {
    const IntList sizes = Sizes(input, window.size(), scope);
    const IntList strides = IntsAttr(*op, "strides");
    if (window.empty() || sizes.size() != window.size() ||
        strides.size() != window.size()) {
      return "padding_algorithm SAME needs constant sizes";
    }
    for (size_t i = 0; i < window.size(); ++i) {
      if (strides[i] < 1) return "expected strides of 1 or more";
      const int64_t outputs = (sizes[i] + strides[i] - 1) / strides[i];
      const int64_t sum = std::max<int64_t>(
          0, (outputs - 1) * strides[i] + window[i] - sizes[i]);
      paddings[2 * i] = sum / 2;
      paddings[2 * i + 1] = sum - sum / 2;
    }
    // Paddle's SAME knows no dilation.
    if (FindAttr(*op, "dilations") != nullptr) {
      SetInts("dilations", IntList(window.size(), 1), op);
    }
  } else if (how != "VALID") {
    return absl::StrCat("padding_algorithm ", how, " is not known");
  }
  SetInts("paddings", paddings, op);
  for (OpDesc::Attr& attr : *op->mutable_attrs()) {
    if (attr.name() == "padding_algorithm") attr.set_s("EXPLICIT");
  }
  return "";
}

}  // namespace

void Windowed(const OpDesc& op, const Rule& rule, PaddleScope& scope,
              ImportedOp* result) {
  OpDesc copy = op;
  const auto& input = InputsOf(op, "Input");
  const auto& filter = InputsOf(op, "Filter");
  if (!input.empty() && !filter.empty()) {
    const size_t rank = IntsAttr(op, "strides").size();
    const std::string wrong =
        ExplicitPaddings(input[0], Sizes(filter[0], rank, scope), scope, &copy);
    if (!wrong.empty()) result->refusals.push_back({wrong});
  }
  ByName(copy, rule, scope, result);
}

void Pooled(const OpDesc& op, const Rule& rule, PaddleScope& scope,
            ImportedOp* result) {
  OpDesc copy = op;
  const auto& input = InputsOf(op, "X");
  if (!input.empty()) {
    const std::string wrong =
        ExplicitPaddings(input[0], IntsAttr(op, "ksize"), scope, &copy);
    if (!wrong.empty()) result->refusals.push_back({wrong});
  }
  ByName(copy, rule, scope, result);
  // Paddle counts windows that begin in the padding.
  if (!result->nodes.empty() && BoolAttr(op, "ceil_mode", false)) {
    SetLast("ceil_windows", std::string("all"), result);
  }
}

// ---- Windows as columns.

namespace {

// What a convolution takes from each place of a window, to a channel of its
// own: [channels * places, 1, height, width].
std::string Windows(Parts& parts, int64_t channels, const IntList& window) {
  const int64_t places = window[0] * window[1];
  const std::string own =
      parts.Cast(parts.ByDiagonal("equal", places, places, 0), VarType::FP32);
  const std::string filter =
      parts.Reshaped(own, DimsOf({places, 1, window[0], window[1]}));
  return parts.Add("tile", {{"X", filter}},
                   {{"repeat_times", IntList{channels, 1, 1, 1}}});
}

struct WindowAttrs {
  IntList window, strides, paddings, dilations;
  IntList counts;  // windows along height and width
};

// Sizes, strides and paddings whose sums and products fit.
constexpr int64_t kMostAlong = int64_t{1} << 20;
// A filter has this many elements squared for each channel.
constexpr int64_t kMostWindow = 1024;

// Paddings in Paddle's unfold: top, left, bottom, right.
bool ReadWindows(const OpDesc& op, const IntList& sizes, WindowAttrs* attrs) {
  attrs->window = IntsAttr(op, "kernel_sizes");
  attrs->strides = IntsAttr(op, "strides");
  attrs->dilations = IntsAttr(op, "dilations");
  const IntList by_side = IntsAttr(op, "paddings");
  const IntList* const pairs[] = {&sizes, &attrs->window, &attrs->strides,
                                  &attrs->dilations};
  for (const IntList* const two : pairs) {
    if (two->size() != 2 || std::min((*two)[0], (*two)[1]) < 1) return false;
    if (std::max((*two)[0], (*two)[1]) > kMostAlong) return false;
  }
  const auto fits = [](int64_t padding) {
    return padding >= 0 && padding <= kMostAlong;
  };
  if (by_side.size() != 4 ||
      !std::all_of(by_side.begin(), by_side.end(), fits) ||
      attrs->window[0] * attrs->window[1] > kMostWindow) {
    return false;
  }
  attrs->paddings = {by_side[0], by_side[2], by_side[1], by_side[3]};
  for (int i = 0; i < 2; ++i) {
    const int64_t room = sizes[i] + by_side[i] + by_side[i + 2] -
                         attrs->dilations[i] * (attrs->window[i] - 1) - 1;
    if (room < 0) return false;
    attrs->counts.push_back(room / attrs->strides[i] + 1);
  }
  return true;
}

}  // namespace

// Windows of [N, C, H, W] as columns of [N, C * places, windows]: a convolution
// of each channel.
void Unfolded(const OpDesc& op, const Rule&, PaddleScope& scope,
              ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result, "Y");
  if (!in.ok()) return;
  const IntList& dims = in[0].dims;
  WindowAttrs by;
  if (in[0].rank() != 4 || dims[1] < 1 ||
      !ReadWindows(op, {dims[2], dims[3]}, &by)) {
    return RefuseDimsOf(in[0], "expected [N, C, H, W] with room for a window",
                        result);
  }
  Parts parts = in.Write();
  const std::string columns = parts.Add(
      "conv2d",
      {{"Input", in[0].value}, {"Filter", Windows(parts, dims[1], by.window)}},
      {{"strides", by.strides},
       {"paddings", by.paddings},
       {"dilations", by.dilations},
       {"groups", dims[1]}});
  parts.Reshaped(columns,
                 DimsOf({dims[0], dims[1] * by.window[0] * by.window[1],
                         by.counts[0] * by.counts[1]}));
  parts.End();
}

// Columns of windows added where they came from: the gradient of that.
void Folded(const OpDesc& op, const Rule&, PaddleScope& scope,
            ImportedOp* result) {
  PaddleReader in(op, {"X"}, scope, result, "Y");
  if (!in.ok()) return;
  const IntList& dims = in[0].dims;
  const IntList sizes = IntsAttr(op, "output_sizes");
  WindowAttrs by;
  if (in[0].rank() != 3 || !ReadWindows(op, sizes, &by) || dims[1] < 1 ||
      dims[1] % (by.window[0] * by.window[1]) != 0 ||
      dims[2] != by.counts[0] * by.counts[1]) {
    return RefuseDimsOf(in[0], "expected [N, C * places, windows]", result);
  }
  const int64_t channels = dims[1] / (by.window[0] * by.window[1]);
  Parts parts = in.Write();
  const std::string image = parts.Reshaped(
      in[0].value, DimsOf({dims[0], dims[1], by.counts[0], by.counts[1]}));
  parts.Add("conv2d_transpose",
            {{"Input", image}, {"Filter", Windows(parts, channels, by.window)}},
            {{"strides", by.strides},
             {"paddings", by.paddings},
             {"dilations", by.dilations},
             {"groups", channels},
             {"output_size", sizes}});
  parts.End();
}

}  // namespace halftone
