// The notes of a report that come from what the passes did.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"
#include "graph/schema/op_schema.h"
#include "passes/lower/recompute.h"
#include "passes/report.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {
namespace {

// "a, b, c and 4 more".
std::string FewNames(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  if (names.size() <= kMost) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMost, ", "),
                      " and ", names.size() - kMost, " more");
}

// The model's own op that a part stands for: its first origin.
std::string FirstOrigin(const Program& program, const Op& op) {
  return std::string(
      program.name_of(op.origins.empty() ? op.name : op.origins[0]));
}

// What grows with the samples, of one.
int64_t BytesOfSample(const TensorType& type) {
  return type.Elements().coefficient() * SizeOf(type.dtype);
}

// The op, or the one in its body, that takes a norm's statistics.
const Op* StatsOf(const Op& op) {
  if (op.schema->name() == "channel_stats") return &op;
  if (op.body == nullptr) return nullptr;
  for (OpId id : op.body->ops()) {
    const Op& inner = op.body->op(id);
    if (inner.schema->name() == "channel_stats") return &inner;
  }
  return nullptr;
}

}  // namespace

void ReportBuilder::AddNote(absl::string_view code, const std::string& text,
                            const std::vector<std::string>& ops) {
  proto::Note& note = *report_.add_note();
  note.set_code(std::string(code));
  note.set_text(text);
  for (const std::string& op : ops) note.add_op(op);
}

void ReportBuilder::AddLeftOutNote(const std::vector<std::string>& parameters) {
  if (parameters.empty()) return;
  AddNote("P1",
          absl::StrCat("the loss does not depend on ", FewNames(parameters),
                       parameters.size() == 1 ? ", which is" : ", which are",
                       " trainable: no update"),
          parameters);
}

// A level that changes nothing is hardly meant.
void ReportBuilder::AddPrecisionNote() {
  if (!IsLow(low_) || runs_low_) return;
  AddNote(
      "P6",
      absl::StrCat("no op runs in ", Name(low_), ": the level changes nothing"),
      {});
}

void ReportBuilder::AddNumberNote(const NumberNote& note) {
  if (note.ops.empty()) return;
  AddNote(note.code, absl::StrCat(FewNames(note.labels), note.rest), note.ops);
}

void ReportBuilder::AddFusionNotes(const Block& block) {
  std::vector<std::string> norms;
  std::map<std::string, std::vector<std::string>> rounded;  // by how
  int64_t saved = 0;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.decision.reason == Reason::kRecomputed) continue;
    const Op* stats = StatsOf(op);
    if (stats != nullptr && AttrAs<int64_t>(*stats, "saves") > 0) {
      saved += AttrAs<int64_t>(*stats, "saves");
      norms.push_back(FirstOrigin(block.program(), *stats));
    }
    if (op.body != nullptr) {
      const std::string& rounds = AttrAs<std::string>(op, "rounds");
      if (rounds.empty()) continue;
      for (absl::string_view how : absl::StrSplit(rounds, "; ")) {
        rounded[std::string(how)].push_back(std::string(block.name(op)));
      }
    }
  }
  if (!norms.empty()) {
    AddNote("F1",
            absl::StrCat(norms.size(), norms.size() == 1 ? " norm" : " norms",
                         " split for fusions: ", HumanBytes(saved),
                         " per sample need not be moved"),
            norms);
  }
  for (const auto& [how, fusions] : rounded) {
    AddNote(
        "F2",
        absl::StrCat(fusions.size(),
                     fusions.size() == 1 ? " fusion rounds" : " fusions round",
                     " what is kept in f32: ", how,
                     "; --strict-f32-slots forbids it"),
        fusions);
  }
}

void ReportBuilder::AddRecomputeNote(const Block& block) {
  std::vector<std::string> ops;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (op.decision.reason != Reason::kRecomputed) continue;
    ops.push_back(FirstOrigin(block.program(), op));
  }
  if (ops.empty()) return;
  AddNote("M1",
          absl::StrCat(
              ops.size(), ops.size() == 1 ? " op" : " ops",
              " of the forward part run again in backward: ", FewNames(ops)),
          ops);
}

void ReportBuilder::AddCompressNote(const Block& block) {
  std::vector<std::string> values;
  int64_t before = 0, after = 0, bits = 0;
  for (OpId id = block.first(); id.valid(); id = block.next(id)) {
    const Op& op = block.op(id);
    if (!IsOp(block, id, "quantize_groups")) continue;
    const ValueId x = op.in(0);
    bits = AttrAs<int64_t>(op, "bits");
    values.push_back(std::string(block.name(x)));
    before += BytesOfSample(block.type(x));
    for (ValueId out : op.outputs.all()) {
      after += BytesOfSample(block.type(out));
    }
  }
  if (values.empty()) return;
  AddNote(
      "M3",
      absl::StrCat(values.size(), values.size() == 1 ? " value" : " values",
                   " in ", bits, " bits for backward: ", HumanBytes(after),
                   " per sample instead of ", HumanBytes(before), ", ",
                   HumanBytes(before - after), " saved: ", FewNames(values)),
      values);
}

}  // namespace passes
}  // namespace halftone
