#include "passes/options/strategy_fields.h"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/reflection.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/strategy/fields.h"
#include "passes/options/options.h"

namespace halftone {
namespace passes {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

bool IsMessage(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

std::string Join(const std::string& prefix, const FieldDescriptor& field) {
  return prefix.empty() ? field.name()
                        : absl::StrCat(prefix, ".", field.name());
}

// The field that a path names and the message that holds it.
struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;
};

// Makes the messages on the way. The path exists.
Place MakePlace(Message* message, absl::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    message = message->GetReflection()->MutableMessage(
        message, message->GetDescriptor()->FindFieldByName(parts[i]));
  }
  return {message, message->GetDescriptor()->FindFieldByName(parts.back())};
}

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string& message) override {
    if (text_.empty()) text_ = message;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::Status SetMessage(const Place& place, const Override& o) {
  const Reflection& reflection = *place.message->GetReflection();
  Message* target = place.field->is_repeated()
                        ? reflection.AddMessage(place.message, place.field)
                        : reflection.MutableMessage(place.message, place.field);
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.MergeFromString(o.value, target)) return absl::OkStatus();
  return UsageError(o.origin, ": ", o.path, ": ", error.text());
}

absl::Status Expected(const Override& o, absl::string_view kind) {
  return UsageError(o.origin, ": ", o.path, ": expected ", kind, ", found \"",
                    o.value, "\"");
}

// Sets or adds one scalar member: `parsed` is the value, if it could be read.
template <typename T, typename Set, typename Add>
void Store(const Place& place, const T& value, Set set, Add add) {
  const Reflection& reflection = *place.message->GetReflection();
  if (place.field->is_repeated()) {
    (reflection.*add)(place.message, place.field, value);
  } else {
    (reflection.*set)(place.message, place.field, value);
  }
}

absl::Status SetScalar(const Place& place, const Override& o) {
  switch (place.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool value = false;
      if (!absl::SimpleAtob(o.value, &value)) {
        return Expected(o, "true or false");
      }
      Store(place, value, &Reflection::SetBool, &Reflection::AddBool);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t value = 0;
      if (!absl::SimpleAtoi(o.value, &value)) {
        constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
        double number = 0;
        const bool large = absl::SimpleAtod(o.value, &number) &&
                           number >= static_cast<double>(kMost);
        return Expected(o, large ? absl::StrCat("a whole number up to ", kMost)
                                 : "a whole number");
      }
      Store(place, value, &Reflection::SetInt64, &Reflection::AddInt64);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      if (!absl::SimpleAtod(o.value, &value)) return Expected(o, "a number");
      Store(place, value, &Reflection::SetDouble, &Reflection::AddDouble);
      return absl::OkStatus();
    }
    default:
      Store(place, o.value,
            static_cast<void (Reflection::*)(Message*, const FieldDescriptor*,
                                             std::string) const>(
                &Reflection::SetString),
            static_cast<void (Reflection::*)(Message*, const FieldDescriptor*,
                                             std::string) const>(
                &Reflection::AddString));
      return absl::OkStatus();
  }
}

}  // namespace

std::vector<std::string> StrategyPaths() {
  std::vector<std::string> paths;
  for (const StrategyField& field : StrategyFields()) {
    if (field.kind == StrategyField::Kind::kField) paths.push_back(field.path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::Status SetStrategyField(proto::Strategy* strategy, const Override& o) {
  const StrategyField* const field = FindStrategyField(o.path);
  if (field == nullptr || field->kind == StrategyField::Kind::kMember) {
    return UsageError(o.origin, ": a strategy has no field \"", o.path, "\"",
                      NearestHint(o.path, StrategyPaths()));
  }
  const Place place = MakePlace(strategy, o.path);
  return IsMessage(*place.field) ? SetMessage(place, o) : SetScalar(place, o);
}

void CollectLines(const Message& message, const TextFormat::ParseInfoTree& tree,
                  const std::string& prefix,
                  std::map<std::string, int>* lines) {
  std::vector<const FieldDescriptor*> fields;
  const Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = Join(prefix, *field);
    const int count =
        field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    int line = 0;
    for (int i = 0; i < count; ++i) {
      const int index = field->is_repeated() ? i : -1;
      const std::string member =
          field->is_repeated() ? absl::StrCat(path, "[", i, "]") : path;
      // Of a list in brackets only the first member has a location.
      const int own_line = tree.GetLocation(field, index).line + 1;
      if (own_line > 0) line = own_line;
      (*lines)[member] = line;
      lines->try_emplace(path, line);
      if (!IsMessage(*field)) continue;
      const TextFormat::ParseInfoTree* nested =
          tree.GetTreeForNested(field, index);
      if (nested == nullptr) continue;
      CollectLines(field->is_repeated()
                       ? reflection.GetRepeatedMessage(message, field, i)
                       : reflection.GetMessage(message, field),
                   *nested, member, lines);
    }
  }
}

void VisitSetFields(const Message& message, const std::string& prefix,
                    const std::function<void(const std::string&)>& visit) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = Join(prefix, *field);
    if (IsMessage(*field) && !field->is_repeated()) {
      VisitSetFields(message.GetReflection()->GetMessage(message, field), path,
                     visit);
    } else {
      visit(path);
    }
  }
}

void FillDefaults(
    Message* message, const std::string& prefix,
    absl::Span<const std::string> bundles,
    const std::function<void(const std::string&, const std::string&)>& visit) {
  const Descriptor& descriptor = *message->GetDescriptor();
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor* field = descriptor.field(i);
    const OneofDescriptor* const oneof = field->containing_oneof();
    const std::string path = Join(prefix, *field);
    const bool set =
        !field->is_repeated() && reflection.HasField(*message, field);
    if (field->is_repeated()) continue;
    if (IsMessage(*field)) {
      if (!set && (oneof != nullptr || FactsOf(*field).has_unset())) continue;
      FillDefaults(reflection.MutableMessage(message, field), path, bundles,
                   visit);
      continue;
    }
    if (set) continue;
    std::optional<FieldDefault> value = DefaultOf(*field, bundles);
    if (oneof != nullptr) {
      if (reflection.HasOneof(*message, oneof) || !FactsOf(*field).chosen()) {
        continue;
      }
      value = FieldDefault{"true", kDefaultOrigin};
    }
    if (!value.has_value()) continue;
    const absl::Status stored =
        SetScalar({message, field}, {path, value->value, value->origin});
    HT_CHECK(stored.ok(), path.c_str());
    visit(path, value->origin);
  }
}

namespace {

void VisitField(const Message& message, const FieldDescriptor& field,
                const std::string& path, int member, const VisitValue& visit) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) {
    const int size = reflection.FieldSize(message, &field);
    for (int i = 0; i < size; ++i) {
      if (!IsMessage(field)) {
        visit(message, field, i, path, i);
        continue;
      }
      const Message& one = reflection.GetRepeatedMessage(message, &field, i);
      for (int k = 0; k < one.GetDescriptor()->field_count(); ++k) {
        VisitField(one, *one.GetDescriptor()->field(k), path, i, visit);
      }
    }
    return;
  }
  const bool set = reflection.HasField(message, &field);
  if (!IsMessage(field)) {
    if (set || FactsOf(field).required()) {
      visit(message, field, -1, path, member);
    }
  } else if (set) {
    VisitValues(reflection.GetMessage(message, &field), path, visit);
  }
}

}  // namespace

void VisitValues(const Message& message, const std::string& prefix,
                 const VisitValue& visit) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    VisitField(message, field, Join(prefix, field), -1, visit);
  }
}

bool HasField(const Message& message, absl::string_view path) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(path, absl::MaxSplits('.', 1));
  const FieldDescriptor* const field =
      message.GetDescriptor()->FindFieldByName(parts.first);
  const Reflection& reflection = *message.GetReflection();
  return reflection.HasField(message, field) &&
         (parts.second.empty() ||
          HasField(reflection.GetMessage(message, field), parts.second));
}

int MembersAt(const Message& message, absl::string_view path) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(path, absl::MaxSplits('.', 1));
  const FieldDescriptor* const field =
      message.GetDescriptor()->FindFieldByName(parts.first);
  const Reflection& reflection = *message.GetReflection();
  return field->is_repeated()
             ? reflection.FieldSize(message, field)
             : MembersAt(reflection.GetMessage(message, field), parts.second);
}

void AsSets(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (IsMessage(*field)) {
      if (!field->is_repeated()) {
        AsSets(reflection.MutableMessage(message, field));
      }
      for (int i = 0;
           field->is_repeated() && i < reflection.FieldSize(*message, field);
           ++i) {
        AsSets(reflection.MutableRepeatedMessage(message, field, i));
      }
    } else if (field->is_repeated() &&
               field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const auto words =
          reflection.GetMutableRepeatedFieldRef<std::string>(message, field);
      std::set<std::string> set;
      for (int i = 0; i < words.size(); ++i) set.insert(words.Get(i));
      words.Clear();
      for (const std::string& word : set) words.Add(word);
    }
  }
}

void ClearField(Message* message, absl::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  for (size_t i = 0; i < parts.size(); ++i) {
    const FieldDescriptor* field =
        message->GetDescriptor()->FindFieldByName(parts[i]);
    if (field == nullptr) return;
    if (i + 1 == parts.size()) {
      message->GetReflection()->ClearField(message, field);
      return;
    }
    if (!IsMessage(*field) || field->is_repeated() ||
        !message->GetReflection()->HasField(*message, field)) {
      return;
    }
    message = message->GetReflection()->MutableMessage(message, field);
  }
}

}  // namespace passes
}  // namespace halftone
