// DetectKind of model_reader.h.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "google/protobuf/descriptor.h"
#include "graph/base/error.h"
#include "graph/io/compiled_model.h"
#include "graph/io/model_reader.h"
#include "proto/strategy.pb.h"

namespace halftone {
namespace {

// What files that are often given by mistake begin with.
struct Magic {
  absl::string_view bytes;
  absl::string_view what;
};
constexpr Magic kOthers[] = {
    {"\x1f\x8b", "a gzip archive"},
    {"PK\x03\x04", "a zip archive (a PyTorch checkpoint or .npz)"},
    {"\x7f"
     "ELF",
     "a program"},
    {"\x89"
     "HDF",
     "an HDF5 file"},
    {"\x89"
     "PNG",
     "a PNG image"},
    {"\xff\xd8\xff", "a JPEG image"},
    {"\x80\x02", "a Python pickle"},
    {"\x80\x04", "a Python pickle"},
    {"\x28\xb5\x2f\xfd", "a zstd archive"},
    {"BZh", "a bzip2 archive"},
    {"#!", "a script"},
};

bool IsText(absl::string_view content) {
  const absl::string_view head = content.substr(0, 1 << 16);
  return std::all_of(head.begin(), head.end(), [](char c) {
    const unsigned char byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || byte == '\n' || byte == '\t' || byte == '\r' ||
           byte == '\f' || byte == '\v';
  });
}

// The first identifier after blanks and comments; empty if there is none.
absl::string_view FirstWord(absl::string_view text, bool* anything) {
  size_t at = 0;
  while (at < text.size()) {
    if (absl::ascii_isspace(text[at])) {
      ++at;
    } else if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else {
      break;
    }
  }
  *anything = at < text.size();
  size_t end = at;
  while (end < text.size() &&
         (absl::ascii_isalnum(text[end]) || text[end] == '_')) {
    ++end;
  }
  return text.substr(at, end - at);
}

// Safetensors: the length of a JSON object, then the object.
bool IsSafetensors(absl::string_view content) {
  return content.size() > 9 && content[8] == '{' && content[6] == '\0' &&
         content[7] == '\0';
}

// The tags of Model's fields, all below 0x80.
bool MayBeModel(absl::string_view content) {
  const int tag = static_cast<unsigned char>(content[0]);
  const auto* field = proto::Model::descriptor()->FindFieldByNumber(tag >> 3);
  return field != nullptr && (tag & 7) == (field->number() == 2 ? 0 : 2);
}

absl::Status NotAModel(absl::string_view file, absl::string_view found) {
  return ModelError(file,
                    ": expected a model (.pbtxt, .pb, .ht) or a compiled ",
                    "model (.htc), found ", found);
}

absl::StatusOr<FileKind> DetectText(absl::string_view content,
                                    absl::string_view file) {
  bool anything = false;
  const std::string word(FirstWord(content, &anything));
  if (!anything) return NotAModel(file, "nothing but blanks and comments");
  if (word == "program") return FileKind::kTextForm;
  if (proto::Strategy::descriptor()->FindFieldByName(word) != nullptr) {
    return NotAModel(file, "a strategy: pass it with --strategy");
  }
  if (word == "op_lists") {
    return NotAModel(file, "op lists: name them in a strategy's amp.op_lists");
  }
  if (word.empty() && absl::StrContains("{[<", content[0])) {
    return NotAModel(file, "JSON or markup");
  }
  return FileKind::kModelText;
}

}  // namespace

absl::StatusOr<FileKind> DetectKind(absl::string_view content,
                                    absl::string_view file) {
  if (content.empty()) return NotAModel(file, "an empty file");
  if (IsCompiledModel(content)) return FileKind::kCompiledModel;
  for (const Magic& other : kOthers) {
    if (absl::StartsWith(content, other.bytes)) {
      return NotAModel(file, other.what);
    }
  }
  if (IsText(content)) return DetectText(content, file);
  if (IsSafetensors(content)) {
    return NotAModel(file, "tensors (safetensors), which hold no program");
  }
  if (MayBeModel(content)) return FileKind::kModelBinary;
  return NotAModel(file, "bytes of no kind that Halftone knows");
}

}  // namespace halftone
