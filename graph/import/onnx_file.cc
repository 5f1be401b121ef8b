#include "graph/import/onnx_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/import/onnx_wire.h"
#include "graph/io/record_limits.h"

namespace halftone {
namespace {

using onnx_wire::kBytes;
using onnx_wire::kGraph;
using onnx_wire::kInitializer;
using onnx_wire::kRawData;

// What is given by mistake, by its first bytes.
struct Magic {
  absl::string_view bytes, what;
};
constexpr Magic kOthers[] = {
    {"\x1f\x8b", "a gzip archive; gunzip it first"},
    {"PK\x03\x04",
     "a zip archive (a PyTorch checkpoint?); export it with "
     "torch.onnx.export"},
    {"\x80\x02", "a Python pickle, which holds no graph"},
    {"\x80\x04", "a Python pickle, which holds no graph"},
    {"halftone-", "a file of Halftone's own"},
};

// The other wire types of protobuf.
constexpr int kVarint = 0, kFixed64 = 1, kFixed32 = 5;

// Fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(absl::string_view message) : rest_(message) {}

  int number = 0, wire = 0;
  absl::string_view head;  // tag, and the length of bytes
  absl::string_view body;  // bytes, or the number

  // False: there are no more, or none that can be read (`broken`).
  bool Next() {
    if (rest_.empty()) return false;
    const absl::string_view start = rest_;
    const std::optional<uint64_t> tag = Varint();
    uint64_t size = 0;
    broken = true;
    if (!tag.has_value() || *tag >> 3 == 0 || *tag >> 32 != 0) return false;
    number = static_cast<int>(*tag >> 3);
    wire = static_cast<int>(*tag & 7);
    if (wire == kBytes) {
      const std::optional<uint64_t> length = Varint();
      if (!length.has_value()) return false;
      size = *length;
    } else if (wire == kVarint) {
      const absl::string_view before = rest_;
      if (!Varint().has_value()) return false;
      size = before.size() - rest_.size();
      rest_ = before;
    } else if (wire == kFixed64 || wire == kFixed32) {
      size = wire == kFixed64 ? 8 : 4;
    } else {
      return false;
    }
    head = start.substr(0, start.size() - rest_.size());
    if (size > rest_.size()) return false;
    body = rest_.substr(0, size);
    rest_.remove_prefix(size);
    broken = false;
    return true;
  }

  bool broken = false;

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  absl::string_view rest_;
};

void AppendMessage(int number, absl::string_view body, std::string* out) {
  onnx_wire::AppendHead(number, body.size(), out);
  absl::StrAppend(out, body);
}

// The message without the bytes of the graph's initialisers, which go into
// `raw`. False: it is cut off or damaged.
bool TakeRawData(absl::string_view content, std::vector<absl::string_view>* raw,
                 std::string* slim) {
  Fields model(content);
  while (model.Next()) {
    if (model.number != kGraph || model.wire != kBytes) {
      absl::StrAppend(slim, model.head, model.body);
      continue;
    }
    std::string graph;
    Fields fields(model.body);
    while (fields.Next()) {
      if (fields.number != kInitializer || fields.wire != kBytes) {
        absl::StrAppend(&graph, fields.head, fields.body);
        continue;
      }
      std::string tensor;
      raw->emplace_back();
      Fields parts(fields.body);
      while (parts.Next()) {
        if (parts.number == kRawData && parts.wire == kBytes) {
          raw->back() = parts.body;
        } else {
          absl::StrAppend(&tensor, parts.head, parts.body);
        }
      }
      if (parts.broken) return false;
      AppendMessage(kInitializer, tensor, &graph);
    }
    if (fields.broken) return false;
    AppendMessage(kGraph, graph, slim);
  }
  return !model.broken;
}

bool IsText(absl::string_view content) {
  const absl::string_view head = content.substr(0, 4096);
  return std::all_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t' ||
           c == '\r';
  });
}

absl::Status NotAModel(absl::string_view file, absl::string_view found) {
  return ModelError(file, ": expected an ONNX model, found ", found);
}

absl::Status CheckDomains(OnnxFile* file) {
  for (const onnx::OperatorSetIdProto& set : file->model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") {
      file->opset = set.version();
    }
  }
  constexpr int64_t kNewest = 1000;  // beyond it a number says nothing
  if (file->opset >= 1 && file->opset <= kNewest) return absl::OkStatus();
  return NotAModel(file->path,
                   file->opset == 0
                       ? "one that names no version of its ops "
                         "(opset_import)"
                       : absl::StrCat("one of opset ", file->opset));
}

}  // namespace

bool IsOnnx(absl::string_view content) {
  Fields fields(content);
  bool graph = false, opset = false;
  while (fields.Next()) {
    if (fields.number == 1 && fields.wire != kVarint) return false;
    graph = graph || (fields.number == kGraph && fields.wire == kBytes);
    opset = opset || (fields.number == 8 && fields.wire == kBytes);
  }
  return graph && opset;
}

absl::StatusOr<OnnxFile> ParseOnnx(absl::string_view content,
                                   const std::string& path) {
  if (content.empty()) return NotAModel(path, "an empty file");
  for (const Magic& other : kOthers) {
    if (absl::StartsWith(content, other.bytes)) {
      return NotAModel(path, other.what);
    }
  }
  if (IsText(content)) {
    return NotAModel(path, "text; a .pbtxt needs no import");
  }
  OnnxFile file;
  file.path = path;
  std::string slim;
  constexpr char kDamaged[] = "one that is cut off or damaged, or another file";
  if (!TakeRawData(content, &file.raw, &slim)) return NotAModel(path, kDamaged);
  bool parsed = false;
  HT_RETURN_IF_ERROR(ParseBinaryRecords(slim, path, &file.model, &parsed));
  const onnx::GraphProto& graph = file.model.graph();
  if (!parsed ||
      static_cast<size_t>(graph.initializer_size()) != file.raw.size()) {
    return NotAModel(path, kDamaged);
  }
  HT_RETURN_IF_ERROR(CheckDomains(&file));
  if (graph.node_size() == 0) return NotAModel(path, "one without nodes");
  return file;
}

const onnx::AttributeProto* FindAttr(const onnx::NodeProto& node,
                                     absl::string_view name) {
  for (const onnx::AttributeProto& attr : node.attribute()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

}  // namespace halftone
