#include "runtime/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/json/json_reader.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxHeader = 100 << 20;
constexpr size_t kMaxRank = 32;
constexpr size_t kMaxName = 4096;  // bytes; error messages hold names

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

// Takes heads out of the header as it is read: a tree of it would be many times
// its size. An entry's fields may come in any order, and unknown ones are
// passed over.
class HeaderVisitor : public JsonVisitor {
 public:
  explicit HeaderVisitor(absl::string_view file) : file_(file) {}

  const absl::Status& status() const { return status_; }
  std::vector<TensorHead>& heads() { return heads_; }

  bool Key(const std::string& key, int depth) override {
    if (depth == 0 && key.size() > kMaxName) {
      return Fail(absl::StrCat("a tensor has a name of ", key.size(),
                               " bytes, expected up to ", kMaxName));
    }
    if (depth == 0) {
      head_ = TensorHead();
      head_.name = key;
      has_dtype_ = has_shape_ = false;
      offsets_.clear();
    } else if (depth == 1) {
      field_ = key == "dtype"          ? Field::kDType
               : key == "shape"        ? Field::kShape
               : key == "data_offsets" ? Field::kOffsets
                                       : Field::kOther;
    }
    return true;
  }
  bool Begin(bool object, int depth) override {
    if (depth == 0 && !object) {
      return Fail(
          "not a safetensors file: its header is not a JSON object; export it "
          "again");
    }
    if (depth == 0 || (depth == 1 && object)) return true;
    if (depth == 1) return NoObject();
    if (Skips()) return true;
    const bool shape = field_ == Field::kShape;
    if (depth > 2 || object || (!shape && field_ != Field::kOffsets)) {
      return Mistyped();
    }
    has_shape_ |= shape;
    return true;
  }
  bool End(bool, int depth) override {
    if (depth != 1 || IsMetadata()) return true;
    if (!has_dtype_ || !has_shape_ || offsets_.size() != 2) {
      return Damaged("expected dtype, shape and two data_offsets");
    }
    head_.begin = offsets_[0];
    head_.end = offsets_[1];
    heads_.push_back(std::move(head_));
    return true;
  }
  bool Integer(int64_t value, int depth) override {
    if (depth == 0) return Begin(/*object=*/false, 0);
    if (depth == 1) return NoObject();
    if (Skips()) return true;
    if (depth != 3 || value < 0) return Mistyped();
    std::vector<int64_t>& list =
        field_ == Field::kShape ? head_.dims : offsets_;
    if (field_ == Field::kDType || list.size() == kMaxRank) return Mistyped();
    list.push_back(value);
    return true;
  }
  bool Text(const std::string& value, int depth) override {
    if (depth == 2 && field_ == Field::kDType && !IsMetadata()) {
      for (const TypeName& type : kTypes) {
        if (value != type.name) continue;
        head_.dtype = type.dtype;
        has_dtype_ = true;
        return true;
      }
      return Damaged("unknown dtype");
    }
    return Other(depth);
  }
  bool Other(int depth) override {
    if (depth == 0) return Begin(/*object=*/false, 0);
    if (depth == 1) return NoObject();
    return Skips() || Mistyped();
  }

 private:
  enum class Field { kDType, kShape, kOffsets, kOther };

  bool IsMetadata() const { return head_.name == "__metadata__"; }
  bool Skips() const { return field_ == Field::kOther || IsMetadata(); }
  bool NoObject() {
    return IsMetadata() || Damaged("expected an object in the header");
  }
  bool Mistyped() {
    return Damaged(field_ == Field::kDType   ? "expected a word for dtype"
                   : field_ == Field::kShape ? "expected up to 32 whole dims"
                   : field_ == Field::kOffsets
                       ? "expected two whole data_offsets"
                       : "damaged");
  }
  bool Fail(absl::string_view what) {
    status_ = ModelError(file_, ": ", what);
    return false;
  }
  bool Damaged(absl::string_view what) {
    return Fail(absl::StrCat("tensor ", head_.name, ": ", what));
  }

  absl::string_view file_;
  absl::Status status_;
  std::vector<TensorHead> heads_;
  TensorHead head_;
  Field field_ = Field::kOther;
  std::vector<int64_t> offsets_;
  bool has_dtype_ = false, has_shape_ = false;
};

absl::Status CheckBytes(const TensorHead& head, int64_t data_bytes,
                        absl::string_view file) {
  const auto damaged = [&](absl::string_view what) {
    return ModelError(file, ": tensor ", head.name, ": ", what);
  };
  if (head.begin > head.end || head.end > data_bytes) {
    return damaged(absl::StrCat("offsets ", head.begin, "..", head.end,
                                " lie outside the file's ", data_bytes,
                                " bytes of data; is it truncated? Export it "
                                "again"));
  }
  const int64_t expected = BytesOf(head.dims, head.dtype);
  if (expected != head.end - head.begin) {
    return damaged(absl::StrCat("shape ", Shape(head.dims), " expects ",
                                expected, " bytes, found ",
                                head.end - head.begin));
  }
  return absl::OkStatus();
}

// In the order of their bytes, each begins where the one before it ends.
absl::Status CheckLayout(const std::vector<TensorHead>& heads,
                         int64_t data_bytes, absl::string_view file) {
  std::vector<const TensorHead*> order;
  for (const TensorHead& head : heads) order.push_back(&head);
  std::sort(order.begin(), order.end(),
            [](const TensorHead* a, const TensorHead* b) {
              return std::make_pair(a->begin, a->end) <
                     std::make_pair(b->begin, b->end);
            });
  int64_t at = 0;
  for (const TensorHead* head : order) {
    if (head->begin != at) {
      return ModelError(file, ": tensor ", head->name, ": begins at ",
                        head->begin, " of the data, expected ", at,
                        ", where the one before it ends; export it again");
    }
    at = head->end;
  }
  if (at == data_bytes) return absl::OkStatus();
  return ModelError(file, ": ", data_bytes - at,
                    " bytes behind the last tensor; export it again");
}

}  // namespace

std::string SafetensorsHeader(absl::Span<const TensorHead> heads) {
  Json header = Json::object();
  for (const TensorHead& head : heads) {
    const char* dtype = "";
    for (const TypeName& type : kTypes) {
      if (type.dtype == head.dtype) dtype = type.name;
    }
    header[head.name] = {{"dtype", dtype},
                         {"shape", head.dims},
                         {"data_offsets", {head.begin, head.end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data starts aligned
  std::string out(8, '\0');
  const uint64_t size = text.size();
  std::memcpy(&out[0], &size, sizeof(size));
  return out + text;
}

std::string SerializeSafetensors(absl::Span<const Tensor> tensors) {
  std::vector<TensorHead> heads;
  int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const int64_t end = offset + static_cast<int64_t>(tensor.bytes.size());
    heads.push_back({tensor.name, tensor.dtype, tensor.dims, offset, end});
    offset = end;
  }
  const std::string header = SafetensorsHeader(heads);
  std::string out;
  out.reserve(header.size() + offset);  // it is as large as the state itself
  out += header;
  for (const Tensor& tensor : tensors) out += tensor.bytes;
  return out;
}

absl::StatusOr<int64_t> SafetensorsHeaderBytes(absl::string_view prefix,
                                               int64_t file_bytes,
                                               absl::string_view file) {
  uint64_t size = 0;
  if (prefix.size() < sizeof(size)) {
    return ModelError(file,
                      ": not a safetensors file: expected at least 8 "
                      "bytes, found ",
                      prefix.size(), "; export it again");
  }
  std::memcpy(&size, prefix.data(), sizeof(size));
  if (size > kMaxHeader ||
      size > static_cast<uint64_t>(file_bytes - kSafetensorsPrefix)) {
    return ModelError(file,
                      ": not a safetensors file, or truncated: the "
                      "header claims ",
                      size, " bytes of ", file_bytes, "; export it again");
  }
  return static_cast<int64_t>(size);
}

absl::StatusOr<std::vector<TensorHead>> ParseSafetensorsHeader(
    absl::string_view header, int64_t data_bytes, absl::string_view file) {
  HeaderVisitor visitor(file);
  const absl::Status read =
      ReadJson(header, absl::StrCat(file, ": header"), visitor);
  if (!read.ok()) {
    return ModelError(file, ": not a safetensors file: ", read.message(),
                      "; export it again");
  }
  HT_RETURN_IF_ERROR(visitor.status());
  std::vector<TensorHead>& heads = visitor.heads();
  std::sort(
      heads.begin(), heads.end(),
      [](const TensorHead& a, const TensorHead& b) { return a.name < b.name; });
  for (size_t i = 0; i < heads.size(); ++i) {
    HT_RETURN_IF_ERROR(CheckBytes(heads[i], data_bytes, file));
    if (i > 0 && heads[i].name == heads[i - 1].name) {
      return ModelError(file, ": tensor ", heads[i].name,
                        ": is there twice; export it again");
    }
  }
  HT_RETURN_IF_ERROR(CheckLayout(heads, data_bytes, file));
  return std::move(heads);
}

absl::StatusOr<std::vector<Tensor>> ParseSafetensors(absl::string_view content,
                                                     absl::string_view file) {
  HT_ASSIGN_OR_RETURN(
      const int64_t header,
      SafetensorsHeaderBytes(content.substr(0, kSafetensorsPrefix),
                             static_cast<int64_t>(content.size()), file));
  const absl::string_view data = content.substr(kSafetensorsPrefix + header);
  HT_ASSIGN_OR_RETURN(
      std::vector<TensorHead> heads,
      ParseSafetensorsHeader(content.substr(kSafetensorsPrefix, header),
                             static_cast<int64_t>(data.size()), file));
  std::vector<Tensor> tensors;
  for (TensorHead& head : heads) {
    tensors.push_back(
        {std::move(head.name), head.dtype, std::move(head.dims),
         std::string(data.substr(head.begin, head.end - head.begin))});
  }
  return tensors;
}

}  // namespace runtime
}  // namespace halftone
