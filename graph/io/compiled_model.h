// The compiled model (.htc) as the compiler writes and the runtime reads it.
#ifndef HALFTONE_GRAPH_IO_COMPILED_MODEL_H_
#define HALFTONE_GRAPH_IO_COMPILED_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/io/model_reader.h"
#include "graph/io/report_rows.h"
#include "graph/ir/program.h"
#include "proto/compiled_model.pb.h"

namespace halftone {

// Readers accept this version and the one before.
inline constexpr int kCompiledModelFormat = 3;
inline constexpr char kCompiledModelMagic[] = "halftone-compiled-model";
inline constexpr char kProducer[] = "halftone 0.1.0";

// Whether the file begins as every .htc of any version does.
bool IsCompiledModel(absl::string_view content);

struct CompiledModel {
  // Packed as well, with its fingerprint.
  void SetProgram(std::unique_ptr<Program> owned);
  // Packed; `source` keeps all but its ops.
  void SetSource(ModelFile file);
  // With its ops, to compile it again.
  ModelFile WholeSource() const;
  // SetSource of a model that is packed already.
  void KeepSource(ModelFile file, proto::Packed packed);

  // Entries train (if there is an optimizer), eval, init, derive.
  std::unique_ptr<Program> program;
  // Print(*program), which is written and hashed.
  proto::Packed packed_program;
  ModelFile source;  // without its ops
  proto::Packed packed_source;
  proto::Strategy strategy;  // resolved
  proto::OpLists op_lists;
  std::vector<proto::FieldOrigin> origins;
  OpRows ops;                   // of the report
  CastRows casts;               // likewise
  proto::CompileReport report;  // but for ops, casts and passes
  // With their times, unless it was read: those differ from run to run.
  google::protobuf::RepeatedPtrField<proto::PassRow> passes;
  std::string target;       // "cpu"
  std::string fingerprint;  // of the printed program
};

// Deterministic bytes: the same compile gives the same file. Pass times, which
// differ from run to run, are left out. Errors
// (kModel): more bytes than are read again, kMaxModelBytes.
absl::StatusOr<std::string> SerializeCompiledModel(const CompiledModel& model);

// Refuses (kModel) truncated or damaged bytes (a checksum over all of them
// ends the file), another format version ("written by a newer version"),
// unknown required features and op versions, and another target than `target`
// unless it is empty, each with the command to recompile. The program is
// verified at Phase::kLowered.
absl::StatusOr<CompiledModel> ParseCompiledModel(absl::string_view content,
                                                 absl::string_view file,
                                                 absl::string_view target);

// The error of a model that is for another target than `expected`.
absl::Status OtherTargetError(absl::string_view file, absl::string_view target,
                              absl::string_view expected);

// Names and logical shapes of parameters, statistics and slots, hashed.
std::string StateSignature(const Program& program);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IO_COMPILED_MODEL_H_
