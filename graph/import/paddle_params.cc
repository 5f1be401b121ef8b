#include "graph/import/paddle_params.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/schema/paddle_dtypes.h"

namespace halftone {
namespace {

using paddle::VarDesc;
using paddle::VarType;

// A record: u32 version (0), u64 number of LoD levels, each a u64 length and
// so many bytes; u32 version (0), i32 length of a TensorDesc, the TensorDesc,
// the elements.
class Reader {
 public:
  explicit Reader(absl::string_view content) : rest_(content) {}

  // Nullopt: the file ends before.
  template <typename T>
  std::optional<T> Number() {
    T number;
    const std::optional<absl::string_view> bytes = Bytes(sizeof(T));
    if (!bytes.has_value()) return std::nullopt;
    std::memcpy(&number, bytes->data(), sizeof(T));
    return number;
  }
  std::optional<absl::string_view> Bytes(uint64_t count) {
    if (count > rest_.size()) return std::nullopt;
    const absl::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  uint64_t left() const { return rest_.size(); }

 private:
  absl::string_view rest_;
};

// In bytes; nullopt: a negative dim, or more than 2^62.
std::optional<uint64_t> BytesOf(const std::vector<int64_t>& dims, DType dtype) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  uint64_t bytes = SizeOf(dtype);
  for (const int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) return 0;
  }
  for (const int64_t dim : dims) {
    if (static_cast<uint64_t>(dim) > kMost / bytes) return std::nullopt;
    bytes *= static_cast<uint64_t>(dim);
  }
  return bytes;
}

std::string Shape(const std::vector<int64_t>& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// What is wrong with the record; empty: nothing.
std::string Read(Reader& reader, PaddleTensor* tensor) {
  constexpr char kCut[] = "the file ends in it";
  const auto lod_version = reader.Number<uint32_t>();
  const auto levels = reader.Number<uint64_t>();
  if (!lod_version.has_value() || !levels.has_value()) return kCut;
  if (*lod_version != 0) {
    return absl::StrCat("expected version 0, found ", *lod_version);
  }
  for (uint64_t i = 0; i < *levels; ++i) {
    const auto bytes = reader.Number<uint64_t>();
    if (!bytes.has_value() || !reader.Bytes(*bytes).has_value()) return kCut;
  }
  const auto version = reader.Number<uint32_t>();
  const auto length = reader.Number<int32_t>();
  if (!version.has_value() || !length.has_value()) return kCut;
  if (*version != 0 || *length < 0) {
    return absl::StrCat("expected version 0, found ", *version);
  }
  const auto text = reader.Bytes(static_cast<uint64_t>(*length));
  if (!text.has_value()) return kCut;
  VarType::TensorDesc desc;
  if (!desc.ParseFromArray(text->data(), *length)) {
    return "its head cannot be read";
  }
  const std::optional<DType> dtype = DTypeFromPaddle(desc.data_type());
  if (!dtype.has_value()) {
    return absl::StrCat("its dtype is ", NameOf(desc.data_type()));
  }
  tensor->dtype = *dtype;
  tensor->dims.assign(desc.dims().begin(), desc.dims().end());
  const std::optional<uint64_t> size = BytesOf(tensor->dims, *dtype);
  if (!size.has_value()) {
    return absl::StrCat("its dims are ", Shape(tensor->dims));
  }
  const auto data = reader.Bytes(*size);
  if (!data.has_value()) return kCut;
  tensor->bytes = *data;
  return "";
}

bool IsKept(const VarDesc& var) {
  const VarType::Type type = var.type().type();
  return var.persistable() && type != VarType::FEED_MINIBATCH &&
         type != VarType::FETCH_LIST && type != VarType::READER &&
         type != VarType::RAW;
}

}  // namespace

absl::StatusOr<std::vector<PaddleTensor>> ParsePaddleParams(
    absl::string_view content, const std::string& file,
    const paddle::ProgramDesc& program) {
  if (absl::StartsWith(content, "\x80")) {
    return ModelError(file, ": expected Paddle's combined parameters ",
                      "(.pdiparams), found a Python pickle; write them with ",
                      "paddle.static.save_inference_model");
  }
  std::vector<const VarDesc*> vars;
  for (const VarDesc& var : program.blocks(0).vars()) {
    if (IsKept(var)) vars.push_back(&var);
  }
  std::sort(vars.begin(), vars.end(), [](const VarDesc* a, const VarDesc* b) {
    return a->name() < b->name();
  });
  Reader reader(content);
  std::vector<PaddleTensor> tensors;
  for (const VarDesc* const var : vars) {
    if (reader.left() == 0) {
      return ModelError(file, ": expected ", vars.size(), " tensors, those ",
                        "that the program keeps, found ", tensors.size());
    }
    PaddleTensor tensor;
    tensor.name = var->name();
    const std::string wrong = Read(reader, &tensor);
    const absl::string_view place = "; is it this program's file?";
    if (!wrong.empty()) {
      return ModelError(file, ": tensor ", tensors.size(), " (", var->name(),
                        "): ", wrong, place);
    }
    const auto& dims = var->type().lod_tensor().tensor().dims();
    if (!std::equal(dims.begin(), dims.end(), tensor.dims.begin(),
                    tensor.dims.end())) {
      return ModelError(file, ": tensor ", tensors.size(), " (", var->name(),
                        "): expected ", Shape({dims.begin(), dims.end()}),
                        ", found ", Shape(tensor.dims), place);
    }
    tensors.push_back(std::move(tensor));
  }
  if (reader.left() > 0) {
    return ModelError(file, ": expected ", vars.size(), " tensors, those that ",
                      "the program keeps, found ", WithCommas(reader.left()),
                      " bytes more; is it this program's file?");
  }
  return tensors;
}

}  // namespace halftone
