// Reads models: protobuf text or binary, or the text form, told apart by
// content. The only code, with compiled_model.h and zoo.h, that sees
// program.proto.
#ifndef HALFTONE_GRAPH_IO_MODEL_READER_H_
#define HALFTONE_GRAPH_IO_MODEL_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/arena.h"
#include "graph/ir/program.h"
#include "proto/program.pb.h"

namespace halftone {

// No model file is larger: about two million ops as text.
inline constexpr int64_t kMaxModelBytes = int64_t{512} << 20;
// The `format` of program.proto that this version writes and reads.
inline constexpr int kModelFormat = 1;

enum class FileKind {
  kModelText,      // .pbtxt of a Model
  kModelBinary,    // .pb of a Model
  kTextForm,       // .ht
  kCompiledModel,  // .htc
};
// By content; an error (kModel) names what the file seems to be ("a strategy,
// pass it with --strategy", "a gzip archive", "empty").
absl::StatusOr<FileKind> DetectKind(absl::string_view content,
                                    absl::string_view file);

// For readers of other text-format files (`what`: "a strategy (.pbtxt)"): an
// error (kModel) if `content` is plainly none of message `type`, but empty, no
// text, or another kind of file, which is named.
absl::Status ExpectTextOf(const google::protobuf::Descriptor& type,
                          absl::string_view what, absl::string_view content,
                          absl::string_view file);

// A model whose many small messages lie together (a protobuf arena), so that
// none is made or freed by itself. Copies are deep; one that was moved from may
// be assigned to, and no more.
class ModelMessage {
 public:
  ModelMessage();
  explicit ModelMessage(const proto::Model& model) : ModelMessage() {
    *model_ = model;
  }
  ModelMessage(const ModelMessage& other) : ModelMessage(*other) {}
  ModelMessage(ModelMessage&& other) noexcept = default;
  ModelMessage& operator=(const ModelMessage& other) {
    return *this = ModelMessage(other);
  }
  ModelMessage& operator=(ModelMessage&& other) noexcept = default;

  proto::Model& operator*() { return *model_; }
  const proto::Model& operator*() const { return *model_; }
  proto::Model* operator->() { return model_; }
  const proto::Model* operator->() const { return model_; }

 private:
  std::unique_ptr<google::protobuf::Arena> arena_;
  proto::Model* model_;
};

// A model as read, with the line of each named thing. Text format errors give
// "file:line:column: ..." and, for an unknown field, the nearest one.
struct ModelFile {
  ModelMessage model;
  std::string file;
  // By op index / param index / feed index, 1-based lines; empty for binary.
  std::vector<int> op_lines, param_lines, stat_lines, feed_lines;
  std::vector<int> loss_lines, metric_lines, output_lines;
};
absl::StatusOr<ModelFile> ParseModel(absl::string_view content,
                                     absl::string_view file);
absl::StatusOr<ModelFile> ReadModel(const std::string& path);

// Builds the forward program (entry `train`; verified at Phase::kSource):
// unknown ops, slots, attributes, dtypes, dangling and cyclic graphs, two
// definitions, a missing loss var and shape errors are reported with file,
// line, op, slot, expected, found, remedy. Ops may be listed in any
// order; they are put in a topological one that keeps the file's where it can.
// A model without `loss` is legal: it is compiled for evaluation alone.
absl::StatusOr<std::unique_ptr<Program>> BuildProgram(const ModelFile& model);

// Parses a text-format protobuf with file:line errors and nearest field names;
// shared with strategy files.
absl::Status ParseTextProto(absl::string_view content, absl::string_view file,
                            google::protobuf::Message* message);
}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_MODEL_READER_H_
