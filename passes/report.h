// What the compiler decided and did, for compile, inspect, explain and diff.
#ifndef HALFTONE_PASSES_REPORT_H_
#define HALFTONE_PASSES_REPORT_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/dtype.h"
#include "graph/io/compiled_model.h"
#include "graph/ir/program.h"
#include "passes/number_notes.h"
#include "passes/options/options.h"
#include "passes/precision/op_classes.h"
#include "passes/shape_notes.h"

namespace halftone {
namespace passes {

// Notes that a report can hold, for `halftone explain CODE`.
struct NoteDoc {
  absl::string_view code, title, text;
};
absl::Span<const NoteDoc> NoteDocs();

// What a cast reads and writes in a step.
int64_t BytesPerStep(const proto::CastRow& cast, int64_t samples);

// Collects the rows in two steps, since what an op or cast was at insertion
// is gone at the end.
class ReportBuilder {
 public:
  // `source` is the program before any pass.
  ReportBuilder(const Program& source, const Options& options);

  // Ops, casts and parameters as insertion left them: of `entry`, or, where it
  // is empty, of train after append-backward, or of eval where there is no
  // train. `program` lives until AtEnd, and keeps its names.
  void AtInsertion(const Program& program, absl::string_view entry = "");
  // Fates of casts, low cells and buckets of the finished program.
  void AtEnd(const Program& program, absl::string_view entry = "");

  // But for ops and casts.
  proto::CompileReport& report() { return report_; }
  OpRows& ops() { return ops_; }
  CastRows& casts() { return casts_; }
  // Casts that run on their own.
  int standalone() const { return standalone_; }

 private:
  // A cast as insertion left it. It is called by the value that it makes; its
  // op may be called by the op whose gradient it belongs to.
  struct Cast {
    NameId name, op, value;
    DType from{}, to{};
    Role role = Role::kForward;
    Decision decision;
    Dim elements;
    NameList readers;
    CellId parameter;  // that it, or whose gradient, is of; invalid: none
  };
  void AddOp(const Block& block, const Op& op);
  static Cast CastOf(const Block& block, const Op& op,
                     absl::Span<const int32_t> numbers);
  void AddCast(const Cast& cast, proto::CastRow* row) const;
  void AddCasts(const Program& program, const Block& block);
  void AddParameters(const Program& program, const Entry& entry);
  // Trainable parameters without a gradient.
  void AddLeftOutNote(const std::vector<std::string>& parameters);
  // Norms that were split, and values that fusions round.
  void AddFusionNotes(const Block& block);
  // What backward makes again.
  void AddRecomputeNote(const Block& block);
  void AddCompressNote(const Block& block);
  // A level at which nothing runs low.
  void AddPrecisionNote();
  void AddNumberNote(const NumberNote& note);
  void AddNote(absl::string_view code, const std::string& text,
               const std::vector<std::string>& ops);

  OpClasses classes_;
  DType low_ = DType::kF32;  // the dtype that the level asks for
  bool runs_low_ = false;    // some op on that one
  ShapeNotes shapes_;
  IslandNotes islands_;
  // The model's own ops, with the classes in force.
  absl::flat_hash_map<std::string, AmpClass> source_ops_;
  const Program* inserted_ = nullptr;  // that of AtInsertion
  std::vector<Cast> inserted_casts_;
  proto::OpRow row_;  // of the op at hand
  OpRowWriter writer_;
  OpRows ops_;
  CastRows casts_;
  int standalone_ = 0;
  proto::CompileReport report_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_REPORT_H_
