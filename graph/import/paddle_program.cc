#include "graph/import/paddle_program.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/text.h"
#include "graph/io/record_limits.h"

namespace halftone {
namespace {

using google::protobuf::RepeatedPtrField;
using paddle::OpDesc;

// What is given by mistake, by its first bytes.
struct Magic {
  absl::string_view bytes, what;
};
constexpr Magic kOthers[] = {
    {"\x1f\x8b", "a gzip archive; gunzip it first"},
    {"PK\x03\x04", "a zip archive"},
    {"\x80\x02", "a Python pickle (.pdparams, .pdopt), which holds no program"},
    {"\x80\x04", "a Python pickle (.pdparams, .pdopt), which holds no program"},
    {"halftone-", "a file of Halftone's own"},
};

bool IsText(absl::string_view content) {
  const absl::string_view head = content.substr(0, 4096);
  return std::all_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t' ||
           c == '\r';
  });
}

absl::Status NotAProgram(absl::string_view file, absl::string_view found) {
  return ModelError(file, ": expected a program of Paddle's (ProgramDesc), ",
                    "found ", found);
}

const RepeatedPtrField<std::string>& Find(
    const RepeatedPtrField<OpDesc::Var>& slots, absl::string_view slot) {
  static const auto& none = *new RepeatedPtrField<std::string>();
  for (const OpDesc::Var& var : slots) {
    if (var.parameter() == slot && var.arguments_size() > 0) {
      return var.arguments();
    }
  }
  return none;
}

}  // namespace

absl::StatusOr<paddle::ProgramDesc> ParsePaddleProgram(
    absl::string_view content, absl::string_view file) {
  if (content.empty()) return NotAProgram(file, "an empty file");
  for (const Magic& other : kOthers) {
    if (absl::StartsWith(content, other.bytes)) {
      return NotAProgram(file, other.what);
    }
  }
  if (content[0] == '{') {
    return NotAProgram(file,
                       "JSON, as Paddle 3 writes it; save the model with "
                       "FLAGS_enable_pir_api=0");
  }
  if (content[0] != '\n' && IsText(content)) {
    return NotAProgram(file, "text; a .pbtxt needs no import");
  }
  paddle::ProgramDesc program;
  bool parsed = false;
  HT_RETURN_IF_ERROR(ParseBinaryRecords(content, file, &program, &parsed));
  if (!parsed) {
    return NotAProgram(file, program.blocks_size() > 0
                                 ? "one that is cut off or damaged"
                                 : "something else, or a damaged one");
  }
  if (program.blocks_size() == 0 || program.blocks(0).ops_size() == 0) {
    return NotAProgram(file, "one without ops");
  }
  return program;
}

std::string PaddleVersion(const paddle::ProgramDesc& program) {
  const int64_t version = program.version().version();
  if (version <= 0) return "an unknown version";
  return absl::StrCat(version / 1000000, ".", version / 1000 % 1000, ".",
                      version % 1000);
}

const OpDesc::Attr* FindAttr(const OpDesc& op, absl::string_view name) {
  for (const OpDesc::Attr& attr : op.attrs()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

int64_t IntAttr(const OpDesc& op, absl::string_view name, int64_t otherwise) {
  const OpDesc::Attr* const attr = FindAttr(op, name);
  if (attr == nullptr) return otherwise;
  if (attr->type() == OpDesc::INT && attr->has_i()) return attr->i();
  if (attr->type() == OpDesc::LONG && attr->has_l()) return attr->l();
  return otherwise;
}

bool BoolAttr(const OpDesc& op, absl::string_view name, bool otherwise) {
  const OpDesc::Attr* const attr = FindAttr(op, name);
  return attr != nullptr && attr->type() == OpDesc::BOOLEAN ? attr->b()
                                                            : otherwise;
}

double FloatAttr(const OpDesc& op, absl::string_view name, double otherwise) {
  const OpDesc::Attr* const attr = FindAttr(op, name);
  if (attr == nullptr) return otherwise;
  if (attr->type() == OpDesc::FLOAT) return Shortest(attr->f());
  if (attr->type() == OpDesc::FLOAT64) return attr->float64();
  return otherwise;
}

std::vector<int64_t> IntsAttr(const OpDesc& op, absl::string_view name) {
  const OpDesc::Attr* const attr = FindAttr(op, name);
  if (attr == nullptr) return {};
  if (attr->type() == OpDesc::INTS) {
    return {attr->ints().begin(), attr->ints().end()};
  }
  if (attr->type() != OpDesc::LONGS) return {};
  return {attr->longs().begin(), attr->longs().end()};
}

void SetInts(absl::string_view name, const std::vector<int64_t>& values,
             OpDesc* op) {
  OpDesc::Attr* attr = nullptr;
  for (OpDesc::Attr& one : *op->mutable_attrs()) {
    if (one.name() == name) attr = &one;
  }
  if (attr == nullptr) attr = op->add_attrs();
  attr->Clear();
  attr->set_name(std::string(name));
  attr->set_type(OpDesc::LONGS);
  for (const int64_t value : values) attr->add_longs(value);
}

std::string StringAttr(const OpDesc& op, absl::string_view name,
                       absl::string_view otherwise) {
  const OpDesc::Attr* const attr = FindAttr(op, name);
  return attr != nullptr && attr->type() == OpDesc::STRING
             ? attr->s()
             : std::string(otherwise);
}

double ConstantOf(const OpDesc& op) {
  double value = 0;
  if (absl::SimpleAtod(StringAttr(op, "str_value", ""), &value)) return value;
  return FloatAttr(op, "value", 0);
}

const RepeatedPtrField<std::string>& InputsOf(const OpDesc& op,
                                              absl::string_view slot) {
  return Find(op.inputs(), slot);
}

const RepeatedPtrField<std::string>& OutputsOf(const OpDesc& op,
                                               absl::string_view slot) {
  return Find(op.outputs(), slot);
}

proto::DataType FromPaddle(paddle::VarType::Type type) {
  using paddle::VarType;
  switch (type) {
    case VarType::BOOL:
      return proto::BOOL;
    case VarType::INT32:
      return proto::I32;
    case VarType::INT64:
      return proto::I64;
    case VarType::FP16:
      return proto::F16;
    case VarType::FP32:
      return proto::F32;
    case VarType::FP64:
      return proto::F64;
    case VarType::UINT8:
      return proto::U8;
    case VarType::BF16:
      return proto::BF16;
    default:
      return proto::INVALID;
  }
}

bool IsPaddleFloat(int64_t type) {
  using paddle::VarType;
  return type == VarType::FP32 || type == VarType::FP16 ||
         type == VarType::BF16 || type == VarType::FP64;
}

std::string NameOf(paddle::VarType::Type type) {
  const std::string& name = paddle::VarType::Type_Name(type);
  return name.empty() ? absl::StrCat("type ", static_cast<int>(type)) : name;
}

double Shortest(float value) {
  if (!std::isfinite(value)) return value;
  return std::strtod(ExactFloat(value).c_str(), nullptr);
}

}  // namespace halftone
