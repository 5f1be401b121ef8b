// An ONNX model as it lies in a .onnx.
#ifndef HALFTONE_GRAPH_IMPORT_ONNX_FILE_H_
#define HALFTONE_GRAPH_IMPORT_ONNX_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype_fwd.h"
#include "graph/io/model_reader.h"
#include "proto/onnx.pb.h"

namespace halftone {

namespace onnx = proto::onnx;

struct OnnxFile {
  std::string path;
  onnx::ModelProto model;
  // The raw bytes of each initialiser of the graph, which `model` lacks: they
  // lie in the content that was parsed.
  std::vector<absl::string_view> raw;
  int64_t opset = 0;  // of the default domain
};

// Whether the content has the outer form of an ONNX model.
bool IsOnnx(absl::string_view content);

// `content` outlives what comes out; `path` is where it lies, for errors and
// external data. Errors (kModel): what is no ONNX model, with what it seems to
// be, is cut off, has no graph or nodes, or more records than its size lets
// one expect.
absl::StatusOr<OnnxFile> ParseOnnx(absl::string_view content,
                                   const std::string& path);

// Null: none of that name.
const onnx::AttributeProto* FindAttr(const onnx::NodeProto& node,
                                     absl::string_view name);

// kInvalid: ours have none like it.
DType FromOnnx(int32_t data_type);
onnx::TensorProto::DataType ToOnnx(DType dtype);
// "INT8", or the number of a type that has no name.
std::string NameOfOnnxType(int32_t data_type);

// A tensor as its bytes: row-major, little-endian.
struct OnnxTensor {
  DType dtype{};
  std::vector<int64_t> dims;
  absl::string_view bytes;  // of `owned` or of what outlives it
  std::string owned;
  OnnxTensor() = default;
  OnnxTensor(OnnxTensor&& other) { *this = std::move(other); }
  OnnxTensor& operator=(OnnxTensor&& other);
  int64_t elements() const;
};

// Bytes that a tensor's dims ask for; -1: negative dims, or more than 2^62.
int64_t BytesOf(absl::Span<const int64_t> dims, DType dtype);

// `raw`: the bytes that have been taken out of it, if any. External data lies
// in the folder of `path`, in files that no link leads out of. Errors (kModel):
// a dtype that we lack, another number of elements than the dims say, external
// data elsewhere or beyond its file.
absl::StatusOr<OnnxTensor> ReadOnnxTensor(const onnx::TensorProto& tensor,
                                          absl::string_view raw,
                                          const std::string& path);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_ONNX_FILE_H_
