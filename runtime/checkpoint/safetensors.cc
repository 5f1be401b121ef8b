#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "nlohmann/json.hpp"
#include "runtime/checkpoint/checkpoint.h"

namespace halftone {
namespace runtime {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxHeader = 100 << 20;

struct TypeName {
  DType dtype;
  const char* name;  // as safetensors spells it
};
constexpr TypeName kTypes[] = {
    {DType::kF32, "F32"}, {DType::kF16, "F16"},   {DType::kBF16, "BF16"},
    {DType::kF64, "F64"}, {DType::kI32, "I32"},   {DType::kI64, "I64"},
    {DType::kU8, "U8"},   {DType::kBool, "BOOL"},
};

std::string Shape(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// The number of bytes of a shape, or -1 for a negative dim or an overflow.
int64_t BytesOf(absl::Span<const int64_t> dims, DType dtype) {
  int64_t bytes = SizeOf(dtype);
  for (int64_t d : dims) {
    if (d < 0 || __builtin_mul_overflow(bytes, d, &bytes)) return -1;
  }
  return bytes;
}

// One entry of the header, checked against the data's size.
absl::StatusOr<Tensor> ReadEntry(const std::string& name, const Json& entry,
                                 absl::string_view data,
                                 absl::string_view file) {
  auto damaged = [&](absl::string_view what) {
    return ModelError(file, ": tensor ", name, ": ", what);
  };
  if (!entry.is_object()) return damaged("expected an object in the header");
  Tensor tensor;
  tensor.name = name;
  const Json dtype = entry.value("dtype", Json());
  tensor.dtype = DType::kInvalid;
  for (const TypeName& type : kTypes) {
    if (dtype == type.name) tensor.dtype = type.dtype;
  }
  if (tensor.dtype == DType::kInvalid) return damaged("unknown dtype");
  const Json shape = entry.value("shape", Json());
  const Json offsets = entry.value("data_offsets", Json());
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    return damaged("expected shape and two data_offsets");
  }
  for (const Json& d : shape) {
    if (!d.is_number_unsigned()) return damaged("expected whole dims");
    tensor.dims.push_back(d.get<int64_t>());
  }
  const uint64_t begin = offsets[0], end = offsets[1];
  if (begin > end || end > data.size()) {
    return damaged(absl::StrCat("offsets ", begin, "..", end,
                                " lie outside the file's ", data.size(),
                                " bytes of data; is it truncated? Export it "
                                "again"));
  }
  const int64_t expected = BytesOf(tensor.dims, tensor.dtype);
  if (expected < 0 || static_cast<uint64_t>(expected) != end - begin) {
    return damaged(absl::StrCat("shape ", Shape(tensor.dims), " expects ",
                                expected, " bytes, found ", end - begin));
  }
  tensor.bytes = std::string(data.substr(begin, end - begin));
  return tensor;
}

float LoadFloat(const Tensor& t, int64_t i) {
  const char* at = t.bytes.data() + i * SizeOf(t.dtype);
  if (t.dtype == DType::kF32) {
    float v;
    std::memcpy(&v, at, sizeof(v));
    return v;
  }
  if (t.dtype == DType::kF16) {
    half v;
    std::memcpy(&v, at, sizeof(v));
    return static_cast<float>(v);
  }
  if (t.dtype == DType::kBF16) {
    bfloat16 v;
    std::memcpy(&v, at, sizeof(v));
    return static_cast<float>(v);
  }
  double v;
  std::memcpy(&v, at, sizeof(v));
  return static_cast<float>(v);
}

void StoreFloat(float value, Tensor& t, int64_t i) {
  char* at = &t.bytes[i * SizeOf(t.dtype)];
  if (t.dtype == DType::kF32) {
    std::memcpy(at, &value, sizeof(value));
  } else if (t.dtype == DType::kF16) {
    const half v(value);
    std::memcpy(at, &v, sizeof(v));
  } else if (t.dtype == DType::kBF16) {
    const bfloat16 v(value);
    std::memcpy(at, &v, sizeof(v));
  } else {
    const double v = value;
    std::memcpy(at, &v, sizeof(v));
  }
}

}  // namespace

std::string SerializeSafetensors(absl::Span<const Tensor> tensors) {
  Json header = Json::object();
  int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const char* dtype = "";
    for (const TypeName& type : kTypes) {
      if (type.dtype == tensor.dtype) dtype = type.name;
    }
    const int64_t end = offset + static_cast<int64_t>(tensor.bytes.size());
    header[tensor.name] = {{"dtype", dtype},
                           {"shape", tensor.dims},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data starts aligned
  std::string out(8, '\0');
  const uint64_t size = text.size();
  std::memcpy(&out[0], &size, sizeof(size));
  out += text;
  for (const Tensor& tensor : tensors) out += tensor.bytes;
  return out;
}

absl::StatusOr<std::vector<Tensor>> ParseSafetensors(absl::string_view content,
                                                     absl::string_view file) {
  uint64_t size = 0;
  if (content.size() < sizeof(size)) {
    return ModelError(file,
                      ": not a safetensors file: expected at least 8 "
                      "bytes, found ",
                      content.size(), "; export it again");
  }
  std::memcpy(&size, content.data(), sizeof(size));
  if (size > kMaxHeader || size > content.size() - sizeof(size)) {
    return ModelError(file,
                      ": not a safetensors file, or truncated: the "
                      "header claims ",
                      size, " bytes of ", content.size(), "; export it again");
  }
  const absl::string_view text = content.substr(sizeof(size), size);
  const Json header = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!header.is_object()) {
    return ModelError(file,
                      ": not a safetensors file: its header is not a "
                      "JSON object; export it again");
  }
  std::vector<Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    HT_ASSIGN_OR_RETURN(
        Tensor tensor,
        ReadEntry(name, entry, content.substr(sizeof(size) + size), file));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<Tensor> ConvertTensor(const Tensor& tensor, DType to) {
  if (tensor.dtype == to) return tensor;
  if (!IsFloat(tensor.dtype) || !IsFloat(to)) {
    return ModelError("tensor ", tensor.name, ": cannot convert ",
                      Name(tensor.dtype), " to ", Name(to));
  }
  Tensor out;
  out.name = tensor.name;
  out.dtype = to;
  out.dims = tensor.dims;
  const int64_t n = tensor.bytes.size() / SizeOf(tensor.dtype);
  out.bytes.resize(n * SizeOf(to));
  for (int64_t i = 0; i < n; ++i) StoreFloat(LoadFloat(tensor, i), out, i);
  return out;
}

}  // namespace runtime
}  // namespace halftone
