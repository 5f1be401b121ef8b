// Tensors of onnx_file.h: their bytes, wherever they lie.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/import/onnx_file.h"

namespace halftone {
namespace {

using onnx::TensorProto;

std::string Shape(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// ---- External data.

struct External {
  std::string location;
  int64_t offset = 0, length = -1;  // -1: what the dims ask for
};

absl::StatusOr<External> ExternalOf(const TensorProto& tensor) {
  External external;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    int64_t* const number = entry.key() == "offset"   ? &external.offset
                            : entry.key() == "length" ? &external.length
                                                      : nullptr;
    if (entry.key() == "location") external.location = entry.value();
    if (number == nullptr) continue;
    if (absl::SimpleAtoi(entry.value(), number) && *number >= 0) continue;
    return ModelError("external data: expected a number of bytes as its ",
                      entry.key(), ", found \"", entry.value(), "\"");
  }
  return external;
}

// The path of a file that is named relative to the model's folder and lies in
// it, links followed.
absl::StatusOr<std::string> PathInFolder(const std::string& location,
                                         const std::string& model) {
  namespace fs = std::filesystem;
  const fs::path named(location);
  bool leads_out = location.empty() || named.is_absolute() ||
                   location.find('\0') != std::string::npos;
  for (const fs::path& part : named) leads_out = leads_out || part == "..";
  const auto refused = [&] {
    return ModelError("external data in \"", location, "\": expected a file ",
                      "of the model's folder");
  };
  if (leads_out) return refused();
  std::error_code error;
  fs::path folder = fs::path(model).parent_path();
  if (folder.empty()) folder = ".";
  folder = fs::canonical(folder, error);
  if (error) return ModelError(model, ": ", error.message());
  const fs::path path = fs::canonical(folder / named, error);
  if (error) {
    return ModelError("external data in \"", location, "\": ", error.message(),
                      "; it belongs into the model's folder");
  }
  const fs::path inside = path.lexically_relative(folder);
  if (inside.empty() || *inside.begin() == "..") return refused();
  return path.string();
}

absl::Status ReadPart(const std::string& path, int64_t offset, int64_t bytes,
                      std::string* out) {
  const int fd = Retried(
      [&] { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); });
  if (fd < 0) return ModelError(path, ": ", std::strerror(errno));
  struct stat info;
  absl::Status status;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = ModelError(path, ": expected a file");
  } else if (offset > info.st_size || bytes > info.st_size - offset) {
    status = ModelError(path, ": expected ", bytes, " bytes from ", offset,
                        ", found ", info.st_size, " in all");
  } else {
    out->resize(bytes);
    int64_t done = 0;
    while (done < bytes && status.ok()) {
      const ssize_t n = Retried([&] {
        return ::pread(fd, &(*out)[done], bytes - done, offset + done);
      });
      if (n <= 0) status = ModelError(path, ": cannot read");
      done += n;
    }
  }
  ::close(fd);
  return status;
}

absl::Status ReadExternal(const TensorProto& proto, const std::string& model,
                          int64_t bytes, OnnxTensor* tensor) {
  HT_ASSIGN_OR_RETURN(const External external, ExternalOf(proto));
  HT_ASSIGN_OR_RETURN(const std::string path,
                      PathInFolder(external.location, model));
  if (external.length >= 0 && external.length != bytes) {
    return ModelError("external data in \"", external.location, "\": expected ",
                      bytes, " bytes for ", Shape(tensor->dims), ", found ",
                      external.length);
  }
  return ReadPart(path, external.offset, bytes, &tensor->owned);
}

// ---- Typed fields.

template <typename To, typename Numbers>
std::string Packed(const Numbers& numbers) {
  std::string bytes(numbers.size() * sizeof(To), '\0');
  for (int i = 0; i < numbers.size(); ++i) {
    const To value = static_cast<To>(numbers[i]);
    std::memcpy(&bytes[i * sizeof(To)], &value, sizeof(To));
  }
  return bytes;
}

std::string TypedData(const TensorProto& proto, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Packed<float>(proto.float_data());
    case DType::kF64:
      return Packed<double>(proto.double_data());
    case DType::kI64:
      return Packed<int64_t>(proto.int64_data());
    case DType::kI32:
      return Packed<int32_t>(proto.int32_data());
    case DType::kF16:
    case DType::kBF16:
      return Packed<uint16_t>(proto.int32_data());
    case DType::kU8:
    case DType::kBool:
      return Packed<uint8_t>(proto.int32_data());
    case DType::kInvalid:
      break;
  }
  return "";
}

// ---- Dtypes that both have.

struct Pair {
  TensorProto::DataType onnx;
  DType ours;
};
constexpr Pair kDTypes[] = {
    {TensorProto::FLOAT, DType::kF32},     {TensorProto::FLOAT16, DType::kF16},
    {TensorProto::BFLOAT16, DType::kBF16}, {TensorProto::DOUBLE, DType::kF64},
    {TensorProto::INT32, DType::kI32},     {TensorProto::INT64, DType::kI64},
    {TensorProto::UINT8, DType::kU8},      {TensorProto::BOOL, DType::kBool},
};

}  // namespace

DType FromOnnx(int32_t data_type) {
  for (const Pair& pair : kDTypes) {
    if (pair.onnx == data_type) return pair.ours;
  }
  return DType::kInvalid;
}

TensorProto::DataType ToOnnx(DType dtype) {
  for (const Pair& pair : kDTypes) {
    if (pair.ours == dtype) return pair.onnx;
  }
  return TensorProto::UNDEFINED;
}

std::string NameOfOnnxType(int32_t data_type) {
  if (!TensorProto::DataType_IsValid(data_type)) {
    return absl::StrCat("type ", data_type);
  }
  return TensorProto::DataType_Name(
      static_cast<TensorProto::DataType>(data_type));
}

OnnxTensor& OnnxTensor::operator=(OnnxTensor&& other) {
  dtype = other.dtype;
  dims = std::move(other.dims);
  // A short string's bytes move with it.
  const bool own = other.bytes.data() == other.owned.data();
  bytes = other.bytes;
  owned = std::move(other.owned);
  if (own) bytes = owned;
  return *this;
}

int64_t OnnxTensor::elements() const {
  return static_cast<int64_t>(bytes.size()) / SizeOf(dtype);
}

int64_t BytesOf(absl::Span<const int64_t> dims, DType dtype) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t bytes = SizeOf(dtype);
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return -1;
    empty = empty || dim == 0;
  }
  if (empty) return 0;
  for (const int64_t dim : dims) {
    if (dim > kMost / bytes) return -1;
    bytes *= dim;
  }
  return bytes;
}

absl::StatusOr<OnnxTensor> ReadOnnxTensor(const TensorProto& proto,
                                          absl::string_view raw,
                                          const std::string& path) {
  OnnxTensor tensor;
  tensor.dtype = FromOnnx(proto.data_type());
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  if (tensor.dtype == DType::kInvalid) {
    return ModelError("its dtype is ", NameOfOnnxType(proto.data_type()));
  }
  const int64_t bytes = BytesOf(tensor.dims, tensor.dtype);
  if (bytes < 0) return ModelError("its dims are ", Shape(tensor.dims));
  if (raw.empty()) raw = proto.raw_data();
  if (proto.data_location() == TensorProto::EXTERNAL) {
    HT_RETURN_IF_ERROR(ReadExternal(proto, path, bytes, &tensor));
    tensor.bytes = tensor.owned;
  } else if (!raw.empty()) {
    tensor.bytes = raw;
  } else {
    tensor.owned = TypedData(proto, tensor.dtype);
    tensor.bytes = tensor.owned;
  }
  if (static_cast<int64_t>(tensor.bytes.size()) == bytes) return tensor;
  return ModelError("expected ", bytes, " bytes for ", Name(tensor.dtype),
                    Shape(tensor.dims), ", found ", tensor.bytes.size());
}

}  // namespace halftone
