// ParseTextProto of model_reader.h and text_proto.h.
#include "graph/io/text_proto.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "graph/base/error.h"
#include "graph/base/error_list.h"
#include "graph/base/text.h"
#include "graph/io/model_reader.h"
#include "graph/io/plain_text.h"
#include "graph/io/record_limits.h"

namespace halftone {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

constexpr char kNoField[] = "has no field named";
constexpr char kNoExtension[] = "is not defined or is not an extension of";
constexpr int kMaxTextDepth = 64;

// The n-th text in double quotes; empty if there is none.
std::string Quoted(absl::string_view message, size_t n) {
  const std::vector<std::string> parts = absl::StrSplit(message, '"');
  return 2 * n + 1 < parts.size() ? parts[2 * n + 1] : "";
}

// The enum of the field called `field` in `root` or a message below it.
const EnumDescriptor* FindEnum(const Descriptor* root, const std::string& field,
                               absl::flat_hash_set<const Descriptor*>* seen) {
  if (!seen->insert(root).second) return nullptr;
  for (int i = 0; i < root->field_count(); ++i) {
    const FieldDescriptor* f = root->field(i);
    if (f->name() == field && f->enum_type() != nullptr) return f->enum_type();
    if (f->message_type() == nullptr) continue;
    const EnumDescriptor* found = FindEnum(f->message_type(), field, seen);
    if (found != nullptr) return found;
  }
  return nullptr;
}

// What is said of a field that its message has not. One in brackets,
// [like.this], is an extension's; no file of ours has any.
struct Unknown {
  std::string type, field;
  bool bracketed = false;
};
std::optional<Unknown> UnknownOf(absl::string_view message) {
  if (absl::StrContains(message, kNoField)) {
    return Unknown{Quoted(message, 0), Quoted(message, 1), false};
  }
  if (absl::StrContains(message, kNoExtension)) {
    return Unknown{Quoted(message, 1), Quoted(message, 0), true};
  }
  return std::nullopt;
}

struct Rewording {
  absl::string_view theirs, ours;
};
constexpr Rewording kExpected[] = {
    {"identifier", "a field's name or the end of a { ... }"},
    {"string", "text in double quotes"},
    {"integer", "a whole number"},
    {"double", "a number"},
};

// "Expected string, got: O1" and "Expected "{", found "x"." in our words.
std::string Unexpected(absl::string_view message) {
  message.remove_prefix(sizeof("Expected ") - 1);
  const bool quoted = absl::StrContains(message, "\", found \"");
  const absl::string_view between = quoted ? ", found \"" : ", got: ";
  const size_t at = message.find(between);
  if (at == absl::string_view::npos) {
    return absl::StrCat("expected ", message);
  }
  absl::string_view what = message.substr(0, at);
  absl::string_view found = message.substr(at + between.size());
  if (quoted) found = found.substr(0, found.rfind('"'));
  for (const Rewording& word : kExpected) {
    if (what == word.theirs) what = word.ours;
  }
  if (found.empty()) {
    return absl::StrCat("expected ", what, ", found the end of the file; is ",
                        "it whole, with a } for every {?");
  }
  const std::string hint =
      what == kExpected[1].ours && absl::ascii_isalpha(found[0])
          ? absl::StrCat("; write \"", found, "\"")
          : "";
  return absl::StrCat("expected ", what, ", found ", found, hint);
}

// Protobuf's message with what it leaves out: the nearest name, what to do.
std::string Improve(const Descriptor* root, const std::string& message) {
  if (absl::StartsWith(message, "Expected ")) return Unexpected(message);
  if (absl::StrContains(message, "non ascii") ||
      absl::StrContains(message, "control characters")) {
    return absl::StrCat("expected text in ASCII, found another character (",
                        message, "); outside of quotes there is none");
  }
  if (absl::StrContains(message, "specified multiple times")) {
    return absl::StrCat(message, " Keep one of them.");
  }
  if (absl::StrContains(message, "another member of oneof")) {
    return absl::StrCat("expected one of ", Quoted(message, 1), " and ",
                        Quoted(message, 0), ", found both; keep one");
  }
  if (absl::StartsWith(message, "Integer out of range (")) {
    const size_t at = message.find('(') + 1;
    return absl::StrCat("expected a whole number that its field can hold, ",
                        "found ", message.substr(at, message.rfind(')') - at));
  }
  if (const auto unknown = UnknownOf(message)) {
    const Descriptor* descriptor =
        root->file()->pool()->FindMessageTypeByName(unknown->type);
    if (descriptor == nullptr) return message;
    std::vector<std::string> names;
    for (int i = 0; i < descriptor->field_count(); ++i) {
      names.push_back(descriptor->field(i)->name());
    }
    const std::string hint = NearestHint(unknown->field, names);
    const std::string field = unknown->bracketed
                                  ? absl::StrCat("[", unknown->field, "]")
                                  : unknown->field;
    return absl::StrCat("unknown field \"", field, "\" in ", descriptor->name(),
                        hint.empty() ? absl::StrCat("; expected one of ",
                                                    absl::StrJoin(names, " "))
                                     : hint);
  }
  if (absl::StrContains(message, "Unknown enumeration value")) {
    const std::string value = Quoted(message, 0), field = Quoted(message, 1);
    absl::flat_hash_set<const Descriptor*> seen;
    const EnumDescriptor* type = FindEnum(root, field, &seen);
    if (type == nullptr) return message;
    std::vector<std::string> names;
    for (int i = 0; i < type->value_count(); ++i) {
      if (type->value(i)->number() != 0)
        names.push_back(type->value(i)->name());
    }
    return absl::StrCat("unknown ", field, " ", value,
                        NearestHint(value, names), "; expected one of ",
                        absl::StrJoin(names, " "));
  }
  return message;
}

// Keeps unknown fields, which the parser skips with a warning, its only kind,
// and the first error: later ones follow from it.
class Errors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (error_.message.empty()) error_ = {line, column, message};
  }
  void AddWarning(int line, google::protobuf::io::ColumnNumber column,
                  const std::string& message) override {
    if (unknown_.size() < kMost) unknown_.push_back({line, column, message});
  }

  bool any_unknown() const { return !unknown_.empty(); }

  absl::Status ToStatus(absl::string_view content, absl::string_view file,
                        const Descriptor* root) {
    ErrorList errors;
    for (const Found& field : unknown_) {
      errors.Add(Told(Moved(field, content), file, root));
    }
    // What it says behind an unknown field may follow from that.
    if (errors.empty()) errors.Add(Told(error_, file, root));
    return errors.ToStatus();
  }

 private:
  struct Found {
    int line = -1, column = 0;
    std::string message;
  };

  static absl::Status Told(const Found& found, absl::string_view file,
                           const Descriptor* root) {
    const std::string place =
        found.line < 0
            ? std::string(file)
            : absl::StrCat(file, ":", found.line + 1, ":", found.column + 1);
    return ModelError(place, ": ",
                      found.message.empty()
                          ? absl::StrCat("not a text-format ", root->name())
                          : Improve(root, found.message));
  }

  // Protobuf names the place behind an unknown field: goes back to its name.
  static Found Moved(Found found, absl::string_view content) {
    const auto unknown = UnknownOf(found.message);
    if (!unknown.has_value()) return found;
    size_t begin = 0;
    for (int i = 0; i < found.line; ++i) begin = content.find('\n', begin) + 1;
    const size_t end = std::min(content.find('\n', begin), content.size());
    const size_t at = content.substr(0, std::min(begin + found.column, end))
                          .rfind(unknown->field);
    if (at == absl::string_view::npos) return found;
    const absl::string_view before = content.substr(0, at);
    found.line =
        static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    found.column = static_cast<int>(at - (before.rfind('\n') + 1));
    return found;
  }

  static constexpr size_t kMost = 20;

  std::vector<Found> unknown_;
  Found error_;
};

}  // namespace

absl::Status ParseTextProto(absl::string_view content, absl::string_view file,
                            google::protobuf::Message* message) {
  return ParseTextProto(content, file, message, nullptr);
}

absl::Status ParseTextProto(absl::string_view content, absl::string_view file,
                            google::protobuf::Message* message,
                            TextFormat::ParseInfoTree* places) {
  content = WithoutByteOrderMark(content);
  if (static_cast<int64_t>(content.size()) > kMaxModelBytes) {
    return ModelError(file, ": expected at most ", kMaxModelBytes,
                      " bytes, found ", content.size());
  }
  const TextShape shape = ShapeOfText(content);
  HT_RETURN_IF_ERROR(CheckTextRecords(content, file, shape));
  if (places == nullptr) {
    const auto binary = BinaryOfPlainText(content, *message->GetDescriptor());
    if (binary.has_value() && message->ParseFromString(*binary)) {
      return absl::OkStatus();
    }
  }
  google::protobuf::io::ArrayInputStream stream(
      content.data(), static_cast<int>(content.size()));
  TextFormat::Parser parser;
  Errors errors;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(places);
  parser.SetRecursionLimit(kMaxTextDepth);
  // They are skipped, and each is told; what they hold is skipped without a
  // limit on its depth.
  parser.AllowUnknownField(shape.depth < kMaxTextDepth);
  const bool parsed = parser.Parse(&stream, message);
  if (parsed && !errors.any_unknown()) return absl::OkStatus();
  return errors.ToStatus(content, file, message->GetDescriptor());
}

}  // namespace halftone
