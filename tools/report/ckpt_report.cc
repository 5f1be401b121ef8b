#include "tools/report/ckpt_report.h"

#include "absl/strings/str_cat.h"
#include "graph/base/display.h"
#include "graph/base/text.h"
#include "runtime/log/words.h"
#include "runtime/train/best_checkpoint.h"
#include "tools/common/json_text.h"

namespace halftone {
namespace tools {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const CheckpointRow& row) {
  Json object = {{"path", row.path}, {"good", row.status.ok()}};
  if (!row.status.ok()) {
    object["problem"] = std::string(row.status.message());
    return object;
  }
  object["step"] = row.manifest.step;
  object["epoch"] = row.manifest.epoch;
  object["sample"] = row.manifest.sample;
  object["level"] = row.manifest.level;
  object["tensors"] = row.tensors;
  object["bytes"] = row.bytes;
  object["best"] = row.best;
  return object;
}

std::string ToLine(const CheckpointRow& row) {
  const std::string path = PrintableName(row.path);
  if (!row.status.ok()) return absl::StrCat(path, "  damaged\n");
  const runtime::Manifest& m = row.manifest;
  return absl::StrCat(path, "  step ", WithCommas(m.step), ", ",
                      runtime::Count(m.epoch, "epoch"), " and ",
                      runtime::Count(m.sample, "sample"), " done, ", m.level,
                      ", ", runtime::Count(row.tensors, "tensor"), ", ",
                      HumanBytes(row.bytes), ": good",
                      row.best ? ", best\n" : "\n");
}

}  // namespace

std::vector<CheckpointRow> ReadCheckpoints(
    const std::vector<std::string>& paths) {
  std::vector<CheckpointRow> rows;
  int64_t best = -1;
  for (const std::string& path : paths) {
    const auto read = runtime::ReadCheckpoint(path);
    CheckpointRow& row = rows.emplace_back();
    row.path = path;
    row.status = read.status();
    if (!read.ok()) continue;
    row.manifest = read->manifest;
    row.tensors = read->tensors.size();
    for (const runtime::Tensor& tensor : read->tensors) {
      row.bytes += static_cast<int64_t>(tensor.bytes.size());
    }
    best = runtime::BestStep(row.manifest);
  }
  for (CheckpointRow& row : rows) {
    row.best = row.status.ok() && row.manifest.step == best;
  }
  return rows;
}

std::string CheckpointsText(const std::vector<CheckpointRow>& rows) {
  std::string text;
  for (const CheckpointRow& row : rows) text += ToLine(row);
  return text;
}

std::string CheckpointsJson(const std::vector<CheckpointRow>& rows) {
  Json list = Json::array();
  for (const CheckpointRow& row : rows) list.push_back(ToJson(row));
  return JsonText({{"schema", 1}, {"checkpoints", list}});
}

}  // namespace tools
}  // namespace halftone
