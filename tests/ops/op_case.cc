#include "tests/ops/op_case.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/schema/attr_coercion.h"
#include "graph/schema/op_registry.h"

namespace halftone {
namespace {

constexpr char kFolder[] = "tests/ops/cases";

using Words = std::vector<absl::string_view>;

std::vector<std::string> Rest(const Words& words) {
  std::vector<std::string> rest;
  for (size_t i = 1; i < words.size(); ++i) rest.emplace_back(words[i]);
  return rest;
}

class CaseParser {
 public:
  CaseParser(CaseFile* file, absl::string_view content)
      : file_(file), content_(content) {}

  absl::Status Parse() {
    for (absl::string_view line : absl::StrSplit(content_, '\n')) {
      ++line_;
      line = line.substr(0, line.find('#'));
      const Words words =
          absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
      if (!words.empty()) HT_RETURN_IF_ERROR(ParseLine(words));
    }
    return FinishCase();
  }

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return ModelError(file_->path, ":", line_, ": ", parts...);
  }

  absl::Status ParseLine(const Words& words) {
    const absl::string_view key = words[0];
    double number = 0;
    if (absl::SimpleAtod(key, &number)) {
      if (tensor_ == nullptr) return Error("expected a keyword, found ", key);
      return AppendValues(words, 0);
    }
    tensor_ = nullptr;
    if (key == "case") return StartCase(words);
    if (key == "tolerance") return ParseTolerance(words);
    if (key == "row_major") {
      file_->row_major = Rest(words);
      return absl::OkStatus();
    }
    if (file_->cases.empty()) return Error("expected a case before ", key);
    OpCase& c = file_->cases.back();
    if (key == "in") return ParseTensor(words, &c.in);
    if (key == "out") return ParseTensor(words, &c.out);
    if (key == "attr") return ParseAttr(words, &c);
    if (key == "only") return ParseOnly(words, &c);
    if (key == "gradient") {
      c.gradient = Rest(words);
      return absl::OkStatus();
    }
    if (key == "world" && words.size() == 2 &&
        absl::SimpleAtoi(words[1], &c.world)) {
      return absl::OkStatus();
    }
    return Error("expected case, in, out, attr, only, gradient, world, ",
                 "tolerance or row_major, found ", key);
  }

  absl::Status StartCase(const Words& words) {
    HT_RETURN_IF_ERROR(FinishCase());
    if (words.size() != 2) return Error("expected `case <name>`");
    OpCase c;
    c.name = std::string(words[1]);
    c.line = line_;
    c.tolerance = tolerance_;
    file_->cases.push_back(std::move(c));
    return absl::OkStatus();
  }

  absl::Status ParseTolerance(const Words& words) {
    Tolerance tolerance;
    if (words.size() < 2 || words.size() > 3 ||
        !absl::SimpleAtod(words[1], &tolerance.ulps) ||
        (words.size() == 3 &&
         !absl::SimpleAtod(words[2], &tolerance.absolute))) {
      return Error("expected `tolerance <ulps> [<absolute>]`");
    }
    tolerance_ = tolerance;
    return absl::OkStatus();
  }

  // `in X [2,3] 1 2 3`.
  absl::Status ParseTensor(const Words& words, std::vector<CaseTensor>* list) {
    if (words.size() < 3 || !absl::StartsWith(words[2], "[") ||
        !absl::EndsWith(words[2], "]")) {
      return Error("expected `", words[0], " <slot> [<dims>] <values>`");
    }
    const bool in = words[0] == "in";
    const OpSchema& schema = *file_->schema;
    if ((in ? schema.FindInput(words[1]) : schema.FindOutput(words[1])) < 0) {
      return Error(schema.name(), " has no slot ", words[1]);
    }
    CaseTensor tensor;
    tensor.slot = std::string(words[1]);
    const absl::string_view dims = words[2].substr(1, words[2].size() - 2);
    for (absl::string_view d : absl::StrSplit(dims, ',', absl::SkipEmpty())) {
      int64_t dim = 0;
      if (!absl::SimpleAtoi(d, &dim)) return Error("expected dims, found ", d);
      tensor.dims.push_back(dim);
    }
    list->push_back(std::move(tensor));
    tensor_ = &list->back();
    return AppendValues(words, 3);
  }

  absl::Status AppendValues(const Words& words, size_t from) {
    for (size_t i = from; i < words.size(); ++i) {
      double value = 0;
      if (!absl::SimpleAtod(words[i], &value)) {
        return Error("expected a number, found ", words[i]);
      }
      tensor_->values.push_back(value);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<AttrValue> ParseValue(absl::string_view word) const {
    int64_t integer = 0;
    double number = 0;
    if (word == "true") return AttrValue(true);
    if (word == "false") return AttrValue(false);
    if (absl::SimpleAtoi(word, &integer)) return AttrValue(integer);
    if (absl::SimpleAtod(word, &number)) return AttrValue(number);
    return AttrValue(std::string(word));
  }

  // The attribute's kind says how its words are read.
  absl::Status ParseAttr(const Words& words, OpCase* c) {
    if (words.size() < 2) return Error("expected `attr <name> <value>`");
    const int index = file_->schema->FindAttr(words[1]);
    if (index < 0) {
      return Error(file_->schema->name(), " has no attribute ", words[1]);
    }
    const AttrKind kind = KindOf(file_->schema->attrs()[index].default_value);
    AttrValue value;
    if (kind == AttrKind::kInts || kind == AttrKind::kFloats) {
      std::vector<int64_t> integers;
      std::vector<double> numbers;
      for (size_t i = 2; i < words.size(); ++i) {
        double number = 0;
        if (!absl::SimpleAtod(words[i], &number)) {
          return Error("expected a number, found ", words[i]);
        }
        integers.push_back(static_cast<int64_t>(number));
        numbers.push_back(number);
      }
      value = kind == AttrKind::kInts ? AttrValue(integers) : numbers;
    } else {
      if (words.size() != 3) return Error("expected one value");
      AttrValue given = std::string(words[2]);
      if (kind != AttrKind::kString) {
        HT_ASSIGN_OR_RETURN(given, ParseValue(words[2]));
      }
      auto coerced = CoerceAttr(std::move(given), kind);
      if (!coerced.has_value()) {
        return Error("expected ", Name(kind), ", found ", words[2]);
      }
      value = *std::move(coerced);
    }
    c->attrs.emplace_back(std::string(words[1]), std::move(value));
    return absl::OkStatus();
  }

  absl::Status ParseOnly(const Words& words, OpCase* c) {
    if (words.size() < 3 || file_->schema->FindTypeVar(words[1]) < 0) {
      return Error("expected `only <type variable> <dtypes>`");
    }
    for (size_t i = 2; i < words.size(); ++i) {
      const auto dtype = DTypeFromName(words[i]);
      if (!dtype.has_value()) {
        return Error("expected a dtype, found ", words[i]);
      }
      c->only[std::string(words[1])].push_back(*dtype);
    }
    return absl::OkStatus();
  }

  absl::Status FinishCase() const {
    if (file_->cases.empty()) return absl::OkStatus();
    const OpCase& c = file_->cases.back();
    for (const std::vector<CaseTensor>* list : {&c.in, &c.out}) {
      for (const CaseTensor& tensor : *list) {
        int64_t n = 1;
        for (int64_t d : tensor.dims) n *= d;
        if (n == static_cast<int64_t>(tensor.values.size())) continue;
        const Slot* slot = SlotOf(tensor.slot);
        if (slot != nullptr && slot->shape_only()) continue;
        return ModelError(file_->path, ":", c.line, ": case ", c.name,
                          ": slot ", tensor.slot, ": expected ", n,
                          " values, found ", tensor.values.size());
      }
    }
    if (!c.out.empty()) return absl::OkStatus();
    return ModelError(file_->path, ":", c.line, ": case ", c.name,
                      ": expected an output");
  }

  const Slot* SlotOf(const std::string& name) const {
    const int i = file_->schema->FindInput(name);
    return i < 0 ? nullptr : &file_->schema->inputs()[i];
  }

  CaseFile* file_;
  absl::string_view content_;
  int line_ = 0;
  Tolerance tolerance_;
  CaseTensor* tensor_ = nullptr;  // takes further values
};

}  // namespace

absl::StatusOr<CaseFile> ParseCaseFile(absl::string_view content,
                                       const std::string& path,
                                       const OpSchema& schema) {
  CaseFile file;
  file.schema = &schema;
  file.path = path;
  HT_RETURN_IF_ERROR(CaseParser(&file, content).Parse());
  if (file.cases.empty()) return ModelError(path, ": expected a case");
  return file;
}

absl::StatusOr<CaseFile> ReadCaseFile(const std::string& op) {
  const OpSchema* schema = Ops().Find(op);
  const std::string path = absl::StrCat(kFolder, "/", op, ".txt");
  if (schema == nullptr || schema->name() != op) {
    return ModelError(path, ": there is no op of this name");
  }
  HT_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  return ParseCaseFile(content, path, *schema);
}

std::vector<std::string> CaseFileOps() {
  std::vector<std::string> ops;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    ops.push_back(entry.path().stem().string());
  }
  std::sort(ops.begin(), ops.end());
  return ops;
}

}  // namespace halftone
