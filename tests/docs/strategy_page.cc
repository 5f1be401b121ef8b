// docs/strategy.md: fields from the descriptor, meanings from its comments,
// defaults and ranges from what resolving gives and refuses.
#include <fstream>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "graph/base/check.h"
#include "graph/base/text.h"
#include "passes/options/options.h"
#include "tests/docs/docs.h"
#include "tools/common/model_flags.h"

namespace halftone {
namespace docs {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using passes::Override;

bool IsMessage(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

// The messages of a .proto file with their comments, which compiled
// descriptors lack.
class Comments {
 public:
  explicit Comments(const char* file) {
    std::ifstream in(file);
    google::protobuf::FileDescriptorSet set;
    HT_CHECK(set.ParseFromIstream(&in) && set.file_size() == 1, file);
    file_ = pool_.BuildFile(set.file(0));
    HT_CHECK(file_ != nullptr, file);
  }

  template <typename Described>
  std::string Of(const Described& described) const {
    google::protobuf::SourceLocation location;
    if (!Own(described)->GetSourceLocation(&location)) return "";
    const std::string text =
        location.leading_comments + location.trailing_comments;
    return absl::StrJoin(
        absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
  }

 private:
  const Descriptor* Own(const Descriptor& message) const {
    return pool_.FindMessageTypeByName(message.full_name());
  }
  const FieldDescriptor* Own(const FieldDescriptor& field) const {
    return pool_.FindFieldByName(field.full_name());
  }

  google::protobuf::DescriptorPool pool_;
  const google::protobuf::FileDescriptor* file_;
};

// The value at a path as a strategy file has it; "": not set.
std::string ValueAt(const Message& message, absl::string_view path) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(path, absl::MaxSplits('.', 1));
  const FieldDescriptor* field =
      message.GetDescriptor()->FindFieldByName(parts.first);
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (field->is_repeated()) return "";
  if (IsMessage(*field)) {
    return ValueAt(reflection.GetMessage(message, field), parts.second);
  }
  if (!reflection.HasField(message, field) && !field->has_default_value()) {
    return "";
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(reflection.GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ExactDouble(reflection.GetDouble(message, field));
    default:
      return absl::StrCat("\"", reflection.GetString(message, field), "\"");
  }
}

// What an empty strategy becomes under overrides.
passes::Options Resolved(const std::vector<Override>& overrides) {
  const auto options = passes::ResolveOptions({}, overrides);
  HT_CHECK(options.ok(), "a strategy of defaults is sound");
  return *options;
}

// A setting of several fields, as the head of a column.
using Bundle = std::pair<std::string, passes::Options>;

std::vector<Bundle> Levels() {
  std::vector<Bundle> bundles;
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    for (const char* dtype : {"fp16", "bf16"}) {
      bundles.emplace_back(
          absl::StrCat(level, " ", dtype),
          Resolved({{"amp.level", level, ""}, {"amp.dtype", dtype, ""}}));
    }
  }
  return bundles;
}

std::vector<Bundle> Scalers() {
  std::vector<Bundle> bundles = {
      {"none, O1", Resolved({{"amp.level", "O1", ""}})}};
  for (const char* scaler : {"paddle", "apex", "torch"}) {
    bundles.emplace_back(scaler, Resolved({{"amp.level", "O1", ""},
                                           {"amp.scaler", scaler, ""}}));
  }
  return bundles;
}

// What the check expects of a field: it is given what no field of its kind
// takes, and its error is read. `probe` sets the field to such a value.
std::string Expected(const std::string& path, const Override& probe) {
  const auto options = passes::ResolveOptions({}, {probe});
  if (options.ok()) return "";
  for (absl::string_view line :
       absl::StrSplit(options.status().message(), '\n')) {
    absl::ConsumePrefix(&line, "probe: ");
    if (!absl::ConsumePrefix(&line, path + ": expected ")) continue;
    return std::string(line.substr(0, line.find(", found")));
  }
  return "";
}

std::string WrongFor(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return "-1";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "nan";
    default:
      return "?";
  }
}

std::string KindOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return "a whole number";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    default:
      return "text";
  }
}

class Page {
 public:
  Page() : comments_("proto/strategy_comments.pb"), levels_(Levels()) {}

  std::string Text() {
    AddSection(*proto::Strategy::descriptor(), "", "");
    std::string text = absl::StrCat(
        "# The strategy\n\n", kDerived,
        "\nWhat changes a training's numbers besides the model: a file in "
        "protobuf's text\nform (`--strategy FILE`), any field of it on the "
        "command line (`--set\namp.level=O1`; for a list it adds a member), "
        "some "
        "by a flag of their own. Every field\nhas a default; `compile` keeps "
        "the resolved strategy in the `.htc` with each\nvalue's origin. "
        "Examples: `models/mnist_*.pbtxt`.\n");
    absl::StrAppend(&text, sections_, OpListsSection(), BundleTables(),
                    AloneSection());
    return text;
  }

 private:
  void AddSection(const Descriptor& message, const std::string& path,
                  const std::string& doc);
  std::vector<std::string> FieldRow(const FieldDescriptor& field,
                                    const std::string& path,
                                    const Override& probe) const;
  std::string DefaultOf(const std::string& path) const;
  std::string OpListsSection() const;
  std::string BundleTables() const;
  static std::string AloneSection();

  const Comments comments_;
  const std::vector<Bundle> levels_;
  std::string sections_;
};

std::string Page::DefaultOf(const std::string& path) const {
  const std::string value = ValueAt(levels_[0].second.resolved, path);
  for (const auto& [name, options] : levels_) {
    if (path == "amp.level" || path == "amp.dtype") continue;
    if (ValueAt(options.resolved, path) != value) return "[by level](#levels)";
  }
  return Code(value);
}

std::vector<std::string> Page::FieldRow(const FieldDescriptor& field,
                                        const std::string& path,
                                        const Override& probe) const {
  std::string allowed;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    allowed = "true or false";
  } else {
    allowed = Expected(probe.path, probe);
    if (allowed.empty()) allowed = KindOf(field);
  }
  if (field.is_repeated()) allowed = "list: " + allowed;
  std::string doc = comments_.Of(field);
  HT_CHECK(!doc.empty(), path.c_str());  // a field without a comment
  for (const tools::StrategyAlias& alias : tools::StrategyAliases()) {
    if (alias.path == path) absl::StrAppend(&doc, " (`", alias.flag, "`)");
  }
  const bool in_group = probe.path != path;
  return {Code(field.name()), in_group ? "" : DefaultOf(path), allowed, doc};
}

void Page::AddSection(const Descriptor& message, const std::string& path,
                      const std::string& doc) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::function<void()>> below;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string own =
        path.empty() ? field.name() : absl::StrCat(path, ".", field.name());
    if (!IsMessage(field)) {
      rows.push_back(FieldRow(field, own, {own, WrongFor(field), "probe"}));
      continue;
    }
    const std::string field_doc = comments_.Of(field);
    if (field.is_repeated()) {
      below.push_back([this, own, field_doc, &field] {
        const Descriptor& member = *field.message_type();
        std::vector<std::vector<std::string>> member_rows;
        for (int k = 0; k < member.field_count(); ++k) {
          const FieldDescriptor& f = *member.field(k);
          const std::string value =
              absl::StrCat("match: \"*\" ", f.name(), ": ", WrongFor(f));
          member_rows.push_back(
              FieldRow(f, own + "." + f.name(), {own, value, "probe"}));
        }
        absl::StrAppend(&sections_, "\n## ", own, " (any number)\n\n",
                        field_doc, "\n\n",
                        MarkdownTable({"field", "default", "takes", "meaning"},
                                      member_rows));
      });
    } else {
      below.push_back([this, own, field_doc, &field] {
        AddSection(*field.message_type(), own, field_doc);
      });
    }
  }
  if (!path.empty()) {
    absl::StrAppend(&sections_, "\n## ", path, "\n\n", doc, "\n");
    const std::string more = comments_.Of(message);
    if (!more.empty()) absl::StrAppend(&sections_, more, "\n");
    if (!rows.empty()) {
      absl::StrAppend(
          &sections_, "\n",
          MarkdownTable({"field", "default", "takes", "meaning"}, rows));
    }
  }
  for (const auto& section : below) section();
}

std::string Page::OpListsSection() const {
  const Descriptor& lists = *proto::OpLists::descriptor();
  std::vector<std::vector<std::string>> rows;
  for (int i = 0; i < lists.field_count(); ++i) {
    rows.push_back(
        {Code(lists.field(i)->name()), comments_.Of(*lists.field(i))});
  }
  return absl::StrCat(
      "\n## Files of op lists\n\n`op_lists { ... }` in a file that "
      "`amp.op_lists` names. ",
      comments_.Of(lists), "\n\n", MarkdownTable({"field", "meaning"}, rows));
}

// The fields in which the bundles differ.
std::string BundleTable(const std::vector<Bundle>& bundles,
                        absl::string_view but) {
  std::vector<std::string> head = {"field"};
  for (const Bundle& bundle : bundles) head.push_back(bundle.first);
  std::vector<std::vector<std::string>> rows;
  for (const std::string& path : passes::StrategyPaths()) {
    std::vector<std::string> row = {Code(path)};
    bool differ = false;
    for (const Bundle& bundle : bundles) {
      row.push_back(ValueAt(bundle.second.resolved, path));
      differ |= row.back() != row[1];
    }
    if (differ && !absl::StrContains(but, path)) rows.push_back(row);
  }
  return MarkdownTable(head, rows);
}

std::string Page::BundleTables() const {
  return absl::StrCat(
      "\n## Levels\n\nWhat a level and a dtype stand for, where nothing else "
      "is set.\n\n",
      BundleTable(levels_, "amp.level amp.dtype"),
      "\n## Scalers\n\nWhat `amp.scaler` stands for.\n\n",
      BundleTable(Scalers(), "amp.scaler"));
}

std::string Page::AloneSection() {
  std::string text =
      "\n## Without compiling again\n\nThese leave the graph alone, so that "
      "`run X.htc --set` takes them; others need\n`halftone compile`.\n\n";
  for (const std::string& path : passes::StrategyPaths()) {
    if (passes::LeavesGraphAlone(path)) {
      absl::StrAppend(&text, "- ", Code(path), "\n");
    }
  }
  return text;
}

}  // namespace

std::string StrategyPage() { return Page().Text(); }

}  // namespace docs
}  // namespace halftone
