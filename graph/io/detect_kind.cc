// DetectKind and ExpectTextOf of model_reader.h.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "graph/base/error.h"
#include "graph/base/shell_word.h"
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
  return ModelError(file, ": expected a model (.pbtxt, .pb) or a compiled ",
                    "model (.htc), found ", found);
}

// What content that is no text is; empty: nothing that we know, or a model.
absl::string_view OtherBytes(absl::string_view content) {
  for (const Magic& other : kOthers) {
    if (absl::StartsWith(content, other.bytes)) return other.what;
  }
  if (IsText(content)) return "";
  return IsSafetensors(content) ? "tensors (safetensors), which hold no program"
                                : "";
}

enum class TextKind { kBlank, kTextForm, kStrategy, kOpLists, kMarkup, kOther };

TextKind KindOfText(absl::string_view content, std::string* word) {
  bool anything = false;
  *word = std::string(FirstWord(content, &anything));
  if (!anything) return TextKind::kBlank;
  if (*word == "program") return TextKind::kTextForm;
  if (*word == "op_lists") return TextKind::kOpLists;
  if (proto::Strategy::descriptor()->FindFieldByName(*word) != nullptr) {
    return TextKind::kStrategy;
  }
  return word->empty() && absl::StrContains("{[<", content[0])
             ? TextKind::kMarkup
             : TextKind::kOther;
}

// As errors call it; empty for other text.
absl::string_view NameOfKind(TextKind kind) {
  switch (kind) {
    case TextKind::kBlank:
      return "nothing but blanks and comments";
    case TextKind::kTextForm:
      return "a program's text form";
    case TextKind::kStrategy:
      return "a strategy: pass it with --strategy";
    case TextKind::kOpLists:
      return "op lists: name them in a strategy's amp.op_lists";
    case TextKind::kMarkup:
      return "JSON or markup";
    case TextKind::kOther:
      break;
  }
  return "";
}

absl::StatusOr<FileKind> DetectText(absl::string_view content,
                                    absl::string_view file) {
  std::string word;
  const TextKind kind = KindOfText(content, &word);
  if (kind == TextKind::kTextForm) return FileKind::kTextForm;
  if (kind == TextKind::kOther) return FileKind::kModelText;
  return NotAModel(file, NameOfKind(kind));
}

// What a file that should be the text of another message is instead; empty if
// it may well be one.
absl::string_view NotTheText(absl::string_view content,
                             const google::protobuf::Descriptor& type) {
  if (content.empty()) return "an empty file";
  if (IsCompiledModel(content)) return "a compiled model";
  const absl::string_view other = OtherBytes(content);
  if (!other.empty()) return other;
  if (!IsText(content)) return "bytes that are no text";
  std::string word;
  const TextKind kind = KindOfText(content, &word);
  if (type.FindFieldByName(word) != nullptr) return "";
  if (kind != TextKind::kOther) return NameOfKind(kind);
  return proto::Model::descriptor()->FindFieldByName(word) != nullptr
             ? "a model"
             : "";
}

}  // namespace

absl::StatusOr<FileKind> DetectKind(absl::string_view content,
                                    absl::string_view file) {
  if (content.empty()) return NotAModel(file, "an empty file");
  if (IsCompiledModel(content)) return FileKind::kCompiledModel;
  const absl::string_view other = OtherBytes(content);
  if (!other.empty()) return NotAModel(file, other);
  if (IsText(content)) return DetectText(content, file);
  for (const absl::string_view end : {".onnx", ".pdmodel"}) {
    if (!absl::EndsWith(file, end)) continue;
    return NotAModel(
        file, absl::StrCat("a ", end, "; halftone import ", ShellWord(file),
                           " makes a .pbtxt of it"));
  }
  if (MayBeModel(content)) return FileKind::kModelBinary;
  return NotAModel(file, "bytes of no kind that Halftone knows");
}

absl::Status ExpectTextOf(const google::protobuf::Descriptor& type,
                          absl::string_view what, absl::string_view content,
                          absl::string_view file) {
  const absl::string_view found = NotTheText(content, type);
  if (found.empty()) return absl::OkStatus();
  return ModelError(file, ": expected ", what, ", found ", found);
}

}  // namespace halftone
