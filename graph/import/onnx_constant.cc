#include "graph/import/onnx_constant.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "graph/base/dtype.h"
#include "graph/base/half.h"

namespace halftone {
namespace {

template <typename T>
T Load(absl::string_view bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double RealAt(const OnnxTensor& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::kF64:
      return Load<double>(tensor.bytes, i);
    case DType::kF16:
      return static_cast<float>(Load<half>(tensor.bytes, i));
    case DType::kBF16:
      return static_cast<float>(Load<bfloat16>(tensor.bytes, i));
    default:
      return Load<float>(tensor.bytes, i);
  }
}

int64_t IntegerAt(const OnnxTensor& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::kI64:
      return Load<int64_t>(tensor.bytes, i);
    case DType::kI32:
      return Load<int32_t>(tensor.bytes, i);
    case DType::kBool:
      return Load<uint8_t>(tensor.bytes, i) != 0;
    default:
      return Load<uint8_t>(tensor.bytes, i);
  }
}

template <typename T>
void Store(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

bool OnnxConstant::is_float() const { return IsFloat(dtype); }

int64_t OnnxConstant::elements() const {
  return static_cast<int64_t>(is_float() ? reals.size() : ints.size());
}

std::optional<std::vector<int64_t>> OnnxConstant::Integers() const {
  if (is_float()) return std::nullopt;
  std::vector<int64_t> values;
  for (const Dim& one : ints) {
    if (!one.is_constant()) return std::nullopt;
    values.push_back(one.coefficient());
  }
  return values;
}

std::optional<double> OnnxConstant::Uniform() const {
  if (is_float()) {
    for (const double one : reals) {
      if (one != reals[0]) return std::nullopt;
    }
    if (reals.empty() || std::isnan(reals[0])) return std::nullopt;
    return reals[0];
  }
  for (const Dim& one : ints) {
    if (one != ints[0] || !one.is_constant()) return std::nullopt;
  }
  if (ints.empty()) return std::nullopt;
  return static_cast<double>(ints[0].coefficient());
}

int64_t KnownElements(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0 || dim > kMostKnownElements) return -1;
    empty = empty || dim == 0;
    product *= std::max<int64_t>(dim, 1);
    if (product > kMostKnownElements) return -1;
  }
  return empty ? 0 : product;
}

std::optional<OnnxConstant> ConstantOf(const OnnxTensor& tensor) {
  if (KnownElements(tensor.dims) < 0) return std::nullopt;
  OnnxConstant constant;
  constant.dtype = IsFloat(tensor.dtype) ? DType::kF32 : tensor.dtype;
  constant.dims = tensor.dims;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (constant.is_float()) {
      constant.reals.push_back(static_cast<float>(RealAt(tensor, i)));
    } else {
      constant.ints.emplace_back(IntegerAt(tensor, i));
    }
  }
  return constant;
}

std::string BytesOf(const OnnxConstant& constant) {
  std::string bytes;
  for (const double real : constant.reals) {
    Store(static_cast<float>(real), &bytes);
  }
  for (const Dim& one : constant.ints) {
    const int64_t value = one.coefficient();
    if (constant.dtype == DType::kI64) {
      Store(value, &bytes);
    } else if (constant.dtype == DType::kI32) {
      Store(static_cast<int32_t>(value), &bytes);
    } else {
      Store(static_cast<uint8_t>(value), &bytes);
    }
  }
  return bytes;
}

OnnxConstant ListOf(std::vector<Dim> values) {
  OnnxConstant list;
  list.dtype = DType::kI64;
  list.dims = {static_cast<int64_t>(values.size())};
  list.ints = std::move(values);
  return list;
}

}  // namespace halftone
