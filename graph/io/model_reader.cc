#include "graph/io/model_reader.h"

#include <utility>

#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/io/record_limits.h"
#include "graph/io/source_lines.h"

namespace halftone {
namespace {

absl::Status ParseBinary(absl::string_view content, absl::string_view file,
                         proto::Model* model) {
  bool parsed = false;
  HT_RETURN_IF_ERROR(ParseBinaryRecords(content, file, model, &parsed));
  if (!parsed) {
    return ModelError(file, ": expected a binary model (.pb), found damaged ",
                      "or truncated bytes; write it again");
  }
  return absl::OkStatus();
}

// Fields of a later version say what this one would leave out.
absl::Status CheckKnown(absl::string_view file, proto::Model* model) {
  const size_t bytes = model->ByteSizeLong();
  model->DiscardUnknownFields();
  if (model->ByteSizeLong() == bytes) return absl::OkStatus();
  return ModelError(file, ": it has fields that this version of Halftone does ",
                    "not know: expected a model of format ", kModelFormat,
                    ", found one of a newer version, or a damaged file");
}

absl::Status CheckFormat(absl::string_view file, const proto::Model& model) {
  if (model.format() > kModelFormat) {
    return ModelError(file, ": expected format ", kModelFormat,
                      " or older, found ", model.format(),
                      ", written for a newer version of Halftone; use that "
                      "version, or write the model in format ",
                      kModelFormat);
  }
  if (model.format() < 1) {
    return ModelError(file, ": expected format ", kModelFormat, ", found ",
                      model.format());
  }
  return absl::OkStatus();
}

// The lines of a repeated field, if the scanner saw all of its values.
template <typename Lines>
std::vector<int> Take(Lines& lines, const char* field, int count) {
  std::vector<int> found = std::move(lines[field]);
  if (static_cast<int>(found.size()) != count) found.clear();
  return found;
}

void SetLines(absl::string_view content, ModelFile* file) {
  auto lines = TopLevelLines(content);
  const proto::Model& model = *file->model;
  file->op_lines = Take(lines, "op", model.op_size());
  file->param_lines = Take(lines, "param", model.param_size());
  file->stat_lines = Take(lines, "stat", model.stat_size());
  file->feed_lines = Take(lines, "feed", model.feed_size());
  file->loss_lines = Take(lines, "loss", model.has_loss() ? 1 : 0);
  file->metric_lines = Take(lines, "metric", model.metric_size());
  file->output_lines = Take(lines, "output", model.output_size());
}

google::protobuf::ArenaOptions LargeBlocks() {
  google::protobuf::ArenaOptions options;
  options.max_block_size = size_t{1} << 20;
  return options;
}

}  // namespace

ModelMessage::ModelMessage()
    : arena_(std::make_unique<google::protobuf::Arena>(LargeBlocks())),
      model_(
          google::protobuf::Arena::CreateMessage<proto::Model>(arena_.get())) {}

absl::StatusOr<ModelFile> ParseModel(absl::string_view content,
                                     absl::string_view file) {
  if (static_cast<int64_t>(content.size()) > kMaxModelBytes) {
    return ModelError(file, ": expected at most ", kMaxModelBytes,
                      " bytes, found ", content.size());
  }
  HT_ASSIGN_OR_RETURN(const FileKind kind, DetectKind(content, file));
  ModelFile result;
  result.file = std::string(file);
  if (kind == FileKind::kModelText) {
    HT_RETURN_IF_ERROR(ParseTextProto(content, file, &*result.model));
    SetLines(content, &result);
  } else if (kind == FileKind::kModelBinary) {
    HT_RETURN_IF_ERROR(ParseBinary(content, file, &*result.model));
    HT_RETURN_IF_ERROR(CheckFormat(file, *result.model));
    HT_RETURN_IF_ERROR(CheckKnown(file, &*result.model));
  } else {
    return ModelError(file, ": expected a model (.pbtxt or .pb), found ",
                      kind == FileKind::kTextForm
                          ? "a program's text form, which is for reading; "
                            "give the model that it was made from"
                          : "a compiled model");
  }
  HT_RETURN_IF_ERROR(CheckFormat(file, *result.model));
  return result;
}

absl::StatusOr<ModelFile> ReadModel(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(path, kMaxModelBytes));
  return ParseModel(content, path);
}

}  // namespace halftone
