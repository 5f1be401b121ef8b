// Nodes on known values that move elements.
#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/import/onnx_evaluate.h"

namespace halftone {
namespace onnx_evaluate {

std::optional<Ints> Broadcast(const Ints& a, const Ints& b) {
  Ints dims(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto at = [&](const Ints& x) {
      const size_t missing = dims.size() - x.size();
      return i < missing ? int64_t{1} : x[i - missing];
    };
    if (at(a) != at(b) && at(a) != 1 && at(b) != 1) return std::nullopt;
    dims[i] = at(a) == 1 ? at(b) : at(a);
  }
  return dims;
}

Ints Sources(const Ints& dims, const Ints& from) {
  const int64_t count = std::max<int64_t>(0, KnownElements(dims));
  Ints sources(count, 0);
  int64_t inner = 1, stride = 1;
  for (size_t k = 1; k <= from.size(); ++k) {
    const int64_t dim = dims[dims.size() - k], own = from[from.size() - k];
    if (own != 1) {
      for (int64_t i = 0; i < count; ++i) {
        sources[i] += i / inner % dim % own * stride;
      }
    }
    inner *= dim;
    stride *= own;
  }
  return sources;
}

Result Take(const OnnxConstant& x, Ints dims, const Ints& sources) {
  if (KnownElements(dims) != static_cast<int64_t>(sources.size())) {
    return std::nullopt;
  }
  OnnxConstant result;
  result.dtype = x.dtype;
  result.dims = std::move(dims);
  for (const int64_t source : sources) {
    if (source < 0 || source >= x.elements()) return std::nullopt;
    if (x.is_float()) {
      result.reals.push_back(x.reals[source]);
    } else {
      result.ints.push_back(x.ints[source]);
    }
  }
  return result;
}

int64_t IntOf(const onnx::NodeProto& node, absl::string_view name,
              int64_t otherwise) {
  const onnx::AttributeProto* const attr = FindAttr(node, name);
  return attr != nullptr && attr->has_i() ? attr->i() : otherwise;
}

std::optional<Ints> AxesOf(const onnx::NodeProto& node, const Inputs& in,
                           absl::string_view name, size_t input) {
  if (in.size() > input && in[input] != nullptr) return in[input]->Integers();
  const onnx::AttributeProto* const attr = FindAttr(node, name);
  if (attr == nullptr) return std::nullopt;
  return Ints(attr->ints().begin(), attr->ints().end());
}

namespace {

// A file of a few bytes may have tensors of any.
constexpr size_t kMostRank = 16;

// From 0 up; nullopt: there is no such axis.
std::optional<int64_t> Axis(int64_t axis, size_t rank) {
  const int64_t count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count) return std::nullopt;
  return axis < 0 ? axis + count : axis;
}

struct Around {
  int64_t outer = 1, inner = 1;
};
Around AroundAxis(const Ints& dims, int64_t axis) {
  Around around;
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
    if (i < axis) around.outer *= dims[i];
    if (i > axis) around.inner *= dims[i];
  }
  return around;
}

// Those at `indices` along an axis, its dim replaced by `into`.
Result Pick(const OnnxConstant& x, int64_t axis, const Ints& indices,
            const Ints& into) {
  const Around around = AroundAxis(x.dims, axis);
  const int64_t own = x.dims[axis];
  Ints dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), into.begin(), into.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  if (KnownElements(dims) < 0) return std::nullopt;
  Ints sources;
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t index : indices) {
      if (index < 0) index += own;
      if (index < 0 || index >= own) return std::nullopt;
      for (int64_t i = 0; i < around.inner; ++i) {
        sources.push_back((o * own + index) * around.inner + i);
      }
    }
  }
  return Take(x, std::move(dims), sources);
}

Result Gather(const onnx::NodeProto& node, const Inputs& in) {
  const auto axis = Axis(IntOf(node, "axis", 0), in[0]->dims.size());
  const auto indices = in[1]->Integers();
  if (!axis.has_value() || !indices.has_value()) return std::nullopt;
  return Pick(*in[0], *axis, *indices, in[1]->dims);
}

Result Slice(const onnx::NodeProto& node, const Inputs& in) {
  const auto starts = AxesOf(node, in, "starts", 1);
  const auto ends = AxesOf(node, in, "ends", 2);
  if (!starts.has_value() || !ends.has_value()) return std::nullopt;
  Ints axes(starts->size()), steps(starts->size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  axes = AxesOf(node, in, "axes", 3).value_or(axes);
  steps = AxesOf(node, in, "steps", 4).value_or(steps);
  if (ends->size() != axes.size() || steps.size() != axes.size() ||
      starts->size() != axes.size()) {
    return std::nullopt;
  }
  Result result = *in[0];
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = Axis(axes[k], result->dims.size());
    if (!axis.has_value() || steps[k] == 0) return std::nullopt;
    const int64_t dim = result->dims[*axis], step = steps[k];
    const auto within = [&](int64_t at, int64_t low, int64_t high) {
      if (at < 0) at = at < -dim ? -1 : at + dim;
      return std::min(std::max(at, low), high);
    };
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    int64_t at = within((*starts)[k], step > 0 ? 0 : low, high);
    int64_t end = within((*ends)[k], low, high);
    if ((*ends)[k] < -dim) end = low;
    Ints indices;
    while (step > 0 ? at < end : at > end) {
      indices.push_back(at);
      if (__builtin_add_overflow(at, step, &at)) break;
    }
    result =
        Pick(*result, *axis, indices, {static_cast<int64_t>(indices.size())});
    if (!result.has_value()) return std::nullopt;
  }
  return result;
}

Result Concat(const onnx::NodeProto& node, const Inputs& in) {
  const auto axis = Axis(IntOf(node, "axis", 0), in[0]->dims.size());
  if (!axis.has_value()) return std::nullopt;
  OnnxConstant all = *in[0];
  for (size_t k = 1; k < in.size(); ++k) {
    const OnnxConstant& next = *in[k];
    if (next.dims.size() != all.dims.size() || next.dtype != all.dtype) {
      return std::nullopt;
    }
    Ints dims = all.dims;
    dims[*axis] += next.dims[*axis];
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int64_t>(i) != *axis && dims[i] != next.dims[i]) {
        return std::nullopt;
      }
    }
    if (KnownElements(dims) < 0) return std::nullopt;
    const Around around = AroundAxis(all.dims, *axis);
    const int64_t first = all.dims[*axis] * around.inner;
    const int64_t second = next.dims[*axis] * around.inner;
    OnnxConstant joined;
    joined.dtype = all.dtype;
    joined.dims = dims;
    for (int64_t o = 0; o < around.outer; ++o) {
      const auto join = [o](const auto& from, int64_t size, auto* to) {
        if (from.empty()) return;
        to->insert(to->end(), from.begin() + o * size,
                   from.begin() + (o + 1) * size);
      };
      join(all.ints, first, &joined.ints);
      join(next.ints, second, &joined.ints);
      join(all.reals, first, &joined.reals);
      join(next.reals, second, &joined.reals);
    }
    all = std::move(joined);
  }
  return all;
}

Result WithDims(const OnnxConstant& x, Ints dims) {
  if (KnownElements(dims) != x.elements()) return std::nullopt;
  OnnxConstant result = x;
  result.dims = std::move(dims);
  return result;
}

Result Reshape(const onnx::NodeProto& node, const Inputs& in) {
  const auto shape = AxesOf(node, in, "shape", 1);
  if (!shape.has_value()) return std::nullopt;
  Ints dims = *shape;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && IntOf(node, "allowzero", 0) == 0) {
      if (i >= in[0]->dims.size()) return std::nullopt;
      dims[i] = in[0]->dims[i];
    }
    if (dims[i] == -1) {
      if (open >= 0) return std::nullopt;
      open = static_cast<int64_t>(i);
    } else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known)) {
      return std::nullopt;
    }
  }
  if (open >= 0) {
    if (known == 0) return std::nullopt;
    dims[open] = in[0]->elements() / known;
  }
  return WithDims(*in[0], dims);
}

Result Unsqueeze(const onnx::NodeProto& node, const Inputs& in) {
  const auto axes = AxesOf(node, in, "axes", 1);
  if (!axes.has_value()) return std::nullopt;
  const size_t rank = in[0]->dims.size() + axes->size();
  if (rank > kMostRank) return std::nullopt;
  Ints dims(rank, 0);
  for (const int64_t one : *axes) {
    const auto axis = Axis(one, rank);
    if (!axis.has_value() || dims[*axis] == 1) return std::nullopt;
    dims[*axis] = 1;
  }
  size_t next = 0;
  for (int64_t& dim : dims) {
    if (dim == 0) dim = in[0]->dims[next++];
  }
  return WithDims(*in[0], dims);
}

Result Squeeze(const onnx::NodeProto& node, const Inputs& in) {
  const auto axes = AxesOf(node, in, "axes", 1);
  Ints dims, gone;
  for (const int64_t one : axes.value_or(Ints())) {
    const auto axis = Axis(one, in[0]->dims.size());
    if (!axis.has_value()) return std::nullopt;
    gone.push_back(*axis);
  }
  for (size_t i = 0; i < in[0]->dims.size(); ++i) {
    const bool named = std::find(gone.begin(), gone.end(), i) != gone.end();
    const bool goes = axes.has_value() ? named : in[0]->dims[i] == 1;
    if (!goes) dims.push_back(in[0]->dims[i]);
  }
  return WithDims(*in[0], dims);
}

Result Transpose(const onnx::NodeProto& node, const Inputs& in) {
  const Ints& from = in[0]->dims;
  Ints order(from.size());
  std::iota(order.rbegin(), order.rend(), 0);
  order = AxesOf(node, {in[0]}, "perm", 1).value_or(order);
  if (order.size() != from.size()) return std::nullopt;
  Ints strides(from.size(), 1), dims;
  for (size_t i = from.size(); i-- > 1;) strides[i - 1] = strides[i] * from[i];
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(from.size())) {
      return std::nullopt;
    }
    dims.push_back(from[axis]);
  }
  Ints sources(in[0]->elements(), 0);
  int64_t inner = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    for (size_t at = 0; at < sources.size(); ++at) {
      sources[at] +=
          static_cast<int64_t>(at) / inner % dims[i] * strides[order[i]];
    }
    inner *= dims[i];
  }
  return Take(*in[0], dims, sources);
}

// data with updates at indices, which name elements or slices of it; only in a
// form in which all is known.
Result ScatterND(const onnx::NodeProto&, const Inputs& in) {
  const OnnxConstant& data = *in[0];
  const OnnxConstant& updates = *in[2];
  const auto indices = in[1]->Integers();
  if (!indices.has_value() || in[1]->dims.empty() ||
      data.dtype != updates.dtype) {
    return std::nullopt;
  }
  const int64_t depth = in[1]->dims.back();
  const int64_t rank = static_cast<int64_t>(data.dims.size());
  if (depth < 1 || depth > rank) return std::nullopt;
  int64_t slice = 1;
  for (int64_t i = depth; i < rank; ++i) slice *= data.dims[i];
  const int64_t count = in[1]->elements() / depth;
  if (updates.elements() != count * slice) return std::nullopt;
  OnnxConstant result = data;
  for (int64_t k = 0; k < count; ++k) {
    int64_t at = 0;
    for (int64_t i = 0; i < depth; ++i) {
      int64_t index = (*indices)[k * depth + i];
      if (index < 0) index += data.dims[i];
      if (index < 0 || index >= data.dims[i]) return std::nullopt;
      at = at * data.dims[i] + index;
    }
    for (int64_t i = 0; i < slice; ++i) {
      if (data.is_float()) {
        result.reals[at * slice + i] = updates.reals[k * slice + i];
      } else {
        result.ints[at * slice + i] = updates.ints[k * slice + i];
      }
    }
  }
  return result;
}

Result Expand(const onnx::NodeProto&, const Inputs& in) {
  const auto shape = in[1]->Integers();
  if (!shape.has_value() || KnownElements(*shape) < 0) return std::nullopt;
  const std::optional<Ints> dims = Broadcast(in[0]->dims, *shape);
  if (!dims.has_value() || KnownElements(*dims) < 0) return std::nullopt;
  return Take(*in[0], *dims, Sources(*dims, in[0]->dims));
}

Result Tile(const onnx::NodeProto&, const Inputs& in) {
  const Ints& from = in[0]->dims;
  const auto repeats = in[1]->Integers();
  if (!repeats.has_value() || repeats->size() != from.size() ||
      from.size() > kMostRank) {
    return std::nullopt;
  }
  Ints dims = from;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (__builtin_mul_overflow(dims[i], (*repeats)[i], &dims[i])) {
      return std::nullopt;
    }
  }
  if (KnownElements(dims) < 0) return std::nullopt;
  return Take(*in[0], dims, Sources(dims, from));
}

// Matrices of which one triangle is 0.
Result Trilu(const onnx::NodeProto& node, const Inputs& in) {
  const Ints& dims = in[0]->dims;
  const bool has_k = in.size() > 1 && in[1] != nullptr;
  const auto k = has_k ? in[1]->Integers() : std::optional<Ints>(Ints{0});
  if (dims.size() < 2 || !k.has_value() || k->size() != 1) return std::nullopt;
  const bool upper = IntOf(node, "upper", 1) != 0;
  const int64_t columns = dims.back(), rows = dims[dims.size() - 2];
  OnnxConstant result = *in[0];
  for (int64_t i = 0; i < result.elements(); ++i) {
    const int64_t row = i / columns % rows, column = i % columns;
    // Against an overflow, k is where it says the same.
    const int64_t first = row + std::min(std::max((*k)[0], -rows), columns);
    if (upper ? column >= first : column <= first) continue;
    if (result.is_float()) {
      result.reals[i] = 0;
    } else {
      result.ints[i] = Dim(0);
    }
  }
  return result;
}

}  // namespace

const Rules& Moves() {
  static const auto& all = *new Rules{
      {"Concat", {Concat, 1}},       {"Expand", {Expand, 2}},
      {"Gather", {Gather, 2}},       {"Reshape", {Reshape, 1}},
      {"ScatterND", {ScatterND, 3}}, {"Slice", {Slice, 1}},
      {"Squeeze", {Squeeze, 1}},     {"Tile", {Tile, 2}},
      {"Transpose", {Transpose, 1}}, {"Trilu", {Trilu, 1}},
      {"Unsqueeze", {Unsqueeze, 1}},
  };
  return all;
}

}  // namespace onnx_evaluate
}  // namespace halftone
