#include "graph/io/plain_text.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "google/protobuf/wire_format_lite.h"

namespace halftone {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

constexpr int kMaxPlainDepth = 16;
// Every number of so many digits is an int64 and a double.
constexpr size_t kMaxDigits = 15;

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Each function is false where the text is not plain.
class PlainReader {
 public:
  explicit PlainReader(absl::string_view text) : text_(text) {}

  bool Read(const Descriptor& type) {
    out_.reserve(text_.size() / 2);
    return Fields(type, 0) && at_ == text_.size();
  }
  std::string Take() { return std::move(out_); }

 private:
  // Up to the end of the text or a closing brace.
  bool Fields(const Descriptor& type, int depth);
  bool Field(const FieldDescriptor& field, int depth);
  bool Message(const FieldDescriptor& field, int depth);
  bool List(const FieldDescriptor& field);
  bool Scalar(const FieldDescriptor& field);
  bool Text(const FieldDescriptor& field);
  bool Number(const FieldDescriptor& field);
  bool Name(const FieldDescriptor& field);
  bool Whole(const FieldDescriptor& field, absl::string_view digits);

  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Skip(char c) {
    if (Next() != c) return false;
    ++at_;
    Blanks();
    return true;
  }
  void Blanks() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#') {
        at_ = text_.find('\n', at_);
        if (at_ == absl::string_view::npos) at_ = text_.size() - 1;
      } else if (text_[at_] != ' ' && text_[at_] != '\n' &&
                 text_[at_] != '\t' && text_[at_] != '\r') {
        return;
      }
    }
  }
  absl::string_view Word() {
    const size_t begin = at_;
    if (!absl::ascii_isalpha(Next())) return {};
    while (IsWordChar(Next())) ++at_;
    const absl::string_view word = text_.substr(begin, at_ - begin);
    Blanks();
    return word;
  }

  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      out_ += static_cast<char>(value | 0x80);
    }
    out_ += static_cast<char>(value);
  }
  void Tag(const FieldDescriptor& field, WireFormatLite::WireType type) {
    Varint(WireFormatLite::MakeTag(field.number(), type));
  }
  bool TaggedVarint(const FieldDescriptor& field, uint64_t value) {
    Tag(field, WireFormatLite::WIRETYPE_VARINT);
    Varint(value);
    return true;
  }

  absl::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

bool PlainReader::Fields(const Descriptor& type, int depth) {
  Blanks();
  // What protobuf takes once: single fields, and one of each oneof.
  uint64_t seen = 0, seen_oneofs = 0;
  if (depth > kMaxPlainDepth || type.field_count() > 64 ||
      type.oneof_decl_count() > 64) {
    return false;
  }
  while (at_ < text_.size() && text_[at_] != '}') {
    const absl::string_view name = Word();
    const FieldDescriptor* field = nullptr;
    for (int i = 0; i < type.field_count() && field == nullptr; ++i) {
      if (type.field(i)->name() == name) field = type.field(i);
    }
    if (field == nullptr) return false;
    if (!field->is_repeated()) {
      const uint64_t bit = uint64_t{1} << field->index();
      if (seen & bit) return false;
      seen |= bit;
    }
    if (field->containing_oneof() != nullptr) {
      const uint64_t bit = uint64_t{1} << field->containing_oneof()->index();
      if (seen_oneofs & bit) return false;
      seen_oneofs |= bit;
    }
    if (!Field(*field, depth)) return false;
    if (!Skip(',')) Skip(';');
  }
  return true;
}

bool PlainReader::Field(const FieldDescriptor& field, int depth) {
  const bool colon = Skip(':');
  if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
    return !field.is_map() && Message(field, depth);
  }
  if (!colon) return false;
  if (Next() == '[') return field.is_repeated() && List(field);
  return Scalar(field);
}

bool PlainReader::Message(const FieldDescriptor& field, int depth) {
  if (Next() != '{') return false;
  ++at_;
  Tag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  // Most are short: room for a length of one byte, more is made if needed.
  const size_t length_at = out_.size();
  out_ += '\0';
  if (!Fields(*field.message_type(), depth + 1) || !Skip('}')) return false;
  uint64_t length = out_.size() - length_at - 1;
  char varint[10];
  size_t bytes = 0;
  for (; length >= 0x80; length >>= 7) {
    varint[bytes++] = static_cast<char>(length | 0x80);
  }
  varint[bytes++] = static_cast<char>(length);
  out_.replace(length_at, 1, varint, bytes);
  return true;
}

bool PlainReader::List(const FieldDescriptor& field) {
  Skip('[');
  if (Skip(']')) return true;
  do {
    if (!Scalar(field)) return false;
  } while (Skip(','));
  return Skip(']');
}

bool PlainReader::Scalar(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_STRING:
      return Text(field);
    case FieldDescriptor::TYPE_BOOL:
    case FieldDescriptor::TYPE_ENUM:
      return Name(field);
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_DOUBLE:
      return Number(field);
    default:
      return false;
  }
}

bool PlainReader::Text(const FieldDescriptor& field) {
  const char quote = Next();
  if (quote != '"' && quote != '\'') return false;
  const size_t begin = ++at_;
  for (; Next() != quote; ++at_) {
    if (!absl::ascii_isprint(Next()) || Next() == '\\') return false;
  }
  const absl::string_view text = text_.substr(begin, at_ - begin);
  Skip(quote);
  if (Next() == '"' || Next() == '\'') return false;
  Tag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  Varint(text.size());
  out_.append(text.data(), text.size());
  return true;
}

bool PlainReader::Name(const FieldDescriptor& field) {
  const absl::string_view word = Word();
  if (field.type() == FieldDescriptor::TYPE_BOOL) {
    return (word == "true" || word == "false") &&
           TaggedVarint(field, word == "true" ? 1 : 0);
  }
  const EnumValueDescriptor* const value =
      field.enum_type()->FindValueByName(std::string(word));
  return value != nullptr &&
         TaggedVarint(field, static_cast<uint64_t>(
                                 static_cast<int64_t>(value->number())));
}

bool PlainReader::Number(const FieldDescriptor& field) {
  const size_t begin = at_;
  const auto digits = [this] {
    const size_t first = at_;
    while (absl::ascii_isdigit(Next())) ++at_;
    return at_ - first;
  };
  if (Next() == '-') ++at_;
  const size_t first = at_;
  const size_t before = digits();
  // Nor octal numbers.
  if (before == 0 || before > kMaxDigits) return false;
  if (before > 1 && text_[first] == '0') return false;
  const size_t whole_end = at_;
  if (Next() == '.') {
    ++at_;
    digits();
  }
  if (Next() == 'e' || Next() == 'E') {
    ++at_;
    if (Next() == '-' || Next() == '+') ++at_;
    if (digits() == 0) return false;
  }
  if (IsWordChar(Next()) || Next() == '.') return false;
  const bool whole = at_ == whole_end;
  const absl::string_view number = text_.substr(begin, at_ - begin);
  // Protobuf wants something between a number and what follows.
  const size_t end = at_;
  Blanks();
  if (at_ == end && at_ < text_.size() &&
      absl::string_view(",;}]").find(Next()) == absl::string_view::npos) {
    return false;
  }
  if (field.type() != FieldDescriptor::TYPE_DOUBLE) {
    return whole && Whole(field, number);
  }
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value)) return false;
  Tag(field, WireFormatLite::WIRETYPE_FIXED64);
  const uint64_t bits = WireFormatLite::EncodeDouble(value);
  for (int shift = 0; shift < 64; shift += 8) {
    out_ += static_cast<char>(bits >> shift);
  }
  return true;
}

bool PlainReader::Whole(const FieldDescriptor& field,
                        absl::string_view digits) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(digits, &value)) return false;
  if (field.type() == FieldDescriptor::TYPE_INT32 &&
      (value < std::numeric_limits<int32_t>::min() ||
       value > std::numeric_limits<int32_t>::max())) {
    return false;
  }
  return TaggedVarint(field, static_cast<uint64_t>(value));
}

}  // namespace

std::optional<std::string> BinaryOfPlainText(absl::string_view text,
                                             const Descriptor& type) {
  PlainReader reader(text);
  if (!reader.Read(type)) return std::nullopt;
  return reader.Take();
}

}  // namespace halftone
