#include "graph/io/compiled_model.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/shell_word.h"
#include "graph/base/stable_hasher.h"
#include "graph/base/text.h"
#include "graph/io/packed_parts.h"
#include "graph/io/record_limits.h"
#include "graph/schema/op_library.h"
#include "graph/schema/op_registry.h"
#include "graph/targets/target.h"
#include "graph/text/text.h"
#include "graph/verify/verify.h"

namespace halftone {
namespace {

// Tag of field 17, type fixed64, and the eight bytes of the checksum.
constexpr absl::string_view kChecksumTag = "\x89\x01";
constexpr size_t kChecksumBytes = 10;

// Compiled again without it, the source would give another loss on ranks.
constexpr absl::string_view kDenominators = "loss_denominators";
// A sum that no op of the source makes.
constexpr absl::string_view kLossParts = "loss_parts";
// Ops of libraries that a reader has to have.
constexpr absl::string_view kOpLibraries = "op_libraries";

std::string Checksum(absl::string_view bytes) {
  std::string field(kChecksumTag);
  const uint64_t hash = StableHash(bytes);
  for (int i = 0; i < 8; ++i) {
    field.push_back(static_cast<char>(hash >> (8 * i)));
  }
  return field;
}

// The numbers of feeds, parameters, statistics and ops, and their lines. Ops
// that are packed have left their lines.
template <typename File, typename Visit>
void VisitLines(File& file, const Visit& visit) {
  visit(file.model->feed_size(), file.feed_lines);
  visit(file.model->param_size(), file.param_lines);
  visit(file.model->stat_size(), file.stat_lines);
  visit(std::max<int>(file.model->op_size(), file.op_lines.size()),
        file.op_lines);
}

void PutLines(const ModelFile& source, proto::CompiledModel* message) {
  VisitLines(source, [message](int count, const std::vector<int>& lines) {
    for (int i = 0; i < count; ++i) {
      message->add_line(i < static_cast<int>(lines.size()) ? lines[i] : 0);
    }
  });
}

void TakeLines(const proto::CompiledModel& message, ModelFile* source) {
  const auto& all = message.line();
  int total = 0;
  VisitLines(*source,
             [&](int count, const std::vector<int>&) { total += count; });
  if (all.size() != total) return;
  auto next = all.begin();
  VisitLines(*source, [&](int count, std::vector<int>& lines) {
    lines.assign(next, next + count);
    next += count;
  });
}

proto::Packed PackText(absl::string_view text) {
  Packer packer;
  packer.Append(text);
  return packer.Finish();
}

// No message holds more.
absl::Status CheckBytes(uint64_t bytes) {
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  if (bytes <= kMost) return absl::OkStatus();
  return ModelError("a part of the compiled model has ", WithCommas(bytes),
                    " bytes; expected at most ", WithCommas(kMost),
                    "; split the model");
}

void PutOpVersions(const Program& program, proto::CompiledModel* message) {
  std::set<const OpSchema*> schemas;
  for (const auto& entry : program.entries()) {
    AddSchemasOf(entry->block(), &schemas);
  }
  std::vector<const OpSchema*> sorted(schemas.begin(), schemas.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const OpSchema* a, const OpSchema* b) {
              return a->name() < b->name();
            });
  for (const OpSchema* schema : sorted) {
    proto::OpVersion* version = message->add_op_version();
    version->set_op(schema->name());
    version->set_version(schema->version());
  }
}

void PutLibraries(const Program& program, proto::CompiledModel* message) {
  const std::vector<const OpLibrary*> libraries = LibrariesOf(program);
  if (libraries.empty()) return;
  message->add_required_features(std::string(kOpLibraries));
  for (const OpLibrary* library : libraries) {
    proto::OpLibrary* const needed = message->add_op_library();
    needed->set_name(library->name);
    needed->set_version(library->version);
    needed->set_file(library->file);
    needed->set_hash(library->hash);
  }
}

// Reads one file; each refusal says how to get a file that is read.
class Reader {
 public:
  Reader(absl::string_view content, absl::string_view file)
      : content_(content), file_(file) {}

  absl::StatusOr<CompiledModel> Run(absl::string_view target);

 private:
  absl::Status ParseMessage();
  absl::Status CheckVersion() const;
  absl::Status CheckLibraries() const;
  absl::Status CheckOps() const;
  absl::Status CheckTarget(absl::string_view target) const;
  absl::StatusOr<std::unique_ptr<Program>> ParseProgram() const;
  absl::Status TakeReport(CompiledModel* model);
  void TakeSource(CompiledModel* model);
  absl::Status Damaged(absl::string_view what) const {
    return ModelError(file_, ": ", what, "; ", Recompile());
  }
  std::string Recompile() const {
    const std::string& source = message_.source_file();
    return absl::StrCat("compile it again: halftone compile ",
                        source.empty() ? "MODEL" : ShellWord(source),
                        " --strategy STRATEGY -o ", ShellWord(file_));
  }

  absl::string_view content_;
  std::string file_;
  proto::CompiledModel message_;
  proto::Packed packed_program_, packed_source_;
};

absl::Status Reader::ParseMessage() {
  if (!IsCompiledModel(content_)) {
    return ModelError(file_, ": expected a compiled model (.htc), found ",
                      "another kind of file");
  }
  if (static_cast<int64_t>(content_.size()) > kMaxModelBytes) {
    return ModelError(file_, ": expected at most ", kMaxModelBytes,
                      " bytes, found ", content_.size());
  }
  bool parsed = false;
  HT_RETURN_IF_ERROR(ParseBinaryRecords(content_, file_, &message_, &parsed));
  if (parsed) HT_RETURN_IF_ERROR(CheckVersion());
  const size_t size =
      content_.size() - std::min(kChecksumBytes, content_.size());
  if (!parsed || Checksum(content_.substr(0, size)) != content_.substr(size)) {
    return Damaged(
        "the file is truncated or damaged: its checksum is not "
        "that of its content");
  }
  packed_program_ = message_.packed_program();
  packed_source_ = message_.packed_source();
  const absl::Status unpacked = UnpackParts(&message_);
  return unpacked.ok() ? unpacked : Damaged(unpacked.message());
}

absl::Status Reader::CheckVersion() const {
  if (message_.format_version() > kCompiledModelFormat) {
    return Damaged(absl::StrCat(
        "expected format version ", kCompiledModelFormat, " or the one before",
        ", found ", message_.format_version(), ", written by a newer version (",
        message_.producer(), ") than this ", kProducer));
  }
  for (const std::string& feature : message_.required_features()) {
    if (feature == kDenominators || feature == kOpLibraries ||
        feature == kLossParts) {
      continue;
    }
    return Damaged(absl::StrCat(
        "it needs the feature \"", feature, "\", which this ", kProducer,
        " does not have (written by ", message_.producer(), ")"));
  }
  return absl::OkStatus();
}

absl::Status Reader::CheckLibraries() const {
  for (const proto::OpLibrary& needed : message_.op_library()) {
    const std::string what = absl::StrCat(needed.name(), " ", needed.version());
    const OpLibrary* const found = FindOpLibrary(needed.name());
    if (found == nullptr) {
      return DeviceError(file_, ": it has ops of the library ", what,
                         ", which is not loaded; add --op-library ",
                         needed.file(), " (file ", needed.hash(), ")");
    }
    if (found->version != needed.version()) {
      return Damaged(absl::StrCat("it was compiled with the op library ", what,
                                  ", found ", found->version, " in ",
                                  found->file));
    }
  }
  return absl::OkStatus();
}

absl::Status Reader::CheckOps() const {
  if (message_.format_version() < kCompiledModelFormat - 1) {
    return Damaged(
        absl::StrCat("expected format version ", kCompiledModelFormat,
                     " or the one before, found ", message_.format_version()));
  }
  for (const proto::OpVersion& op : message_.op_version()) {
    const OpSchema* schema = Ops().Find(op.op());
    if (schema != nullptr && schema->version() == op.version()) continue;
    return Damaged(absl::StrCat(
        "it uses version ", op.version(), " of op ", op.op(), ", this ",
        kProducer, " has ",
        schema == nullptr ? "no such op"
                          : absl::StrCat("version ", schema->version())));
  }
  return absl::OkStatus();
}

absl::Status Reader::CheckTarget(absl::string_view target) const {
  if (target.empty() || target == message_.target()) return absl::OkStatus();
  return OtherTargetError(file_, message_.target(), target);
}

absl::StatusOr<std::unique_ptr<Program>> Reader::ParseProgram() const {
  auto parsed = Parse(message_.program(), absl::StrCat(file_, "(program)"));
  if (!parsed.ok()) return Damaged(parsed.status().message());
  std::unique_ptr<Program> program = *std::move(parsed);
  program->file = message_.source_file();
  VerifyOptions options;
  options.phase = Phase::kLowered;
  const absl::Status verified = Verify(*program, options);
  if (!verified.ok()) {
    return Damaged(
        absl::StrCat("its program breaks a rule: ", verified.message()));
  }
  if (Hex64(StableHash(message_.program())) != message_.fingerprint() ||
      StateSignature(*program) != message_.state_signature()) {
    return Damaged("fingerprint or state signature is not its program's");
  }
  return program;
}

absl::Status Reader::TakeReport(CompiledModel* model) {
  model->report = std::move(*message_.mutable_report());
  if (message_.has_packed_ops()) {
    absl::StatusOr<OpRows> ops = OpRows::Of(message_.packed_ops());
    if (!ops.ok()) return Damaged(ops.status().message());
    model->ops = *std::move(ops);
  } else {
    OpRowWriter ops;
    for (const proto::OpRow& row : model->report.op()) ops.Add(row);
    model->ops = ops.Finish();
  }
  model->report.clear_op();
  model->casts = CastRows::TakeFrom(&model->report);
  model->passes.Swap(model->report.mutable_pass());
  return absl::OkStatus();
}

void Reader::TakeSource(CompiledModel* model) {
  ModelFile source;
  *source.model = message_.source();
  source.file = message_.source_file();
  TakeLines(message_, &source);
  if (packed_source_.bytes() == 0) return model->SetSource(std::move(source));
  model->KeepSource(std::move(source), std::move(packed_source_));
}

absl::StatusOr<CompiledModel> Reader::Run(absl::string_view target) {
  HT_RETURN_IF_ERROR(ParseMessage());
  HT_RETURN_IF_ERROR(CheckLibraries());
  HT_RETURN_IF_ERROR(CheckOps());
  HT_RETURN_IF_ERROR(CheckTarget(target));
  CompiledModel model;
  HT_ASSIGN_OR_RETURN(model.program, ParseProgram());
  model.packed_program = packed_program_.bytes() > 0
                             ? std::move(packed_program_)
                             : PackText(message_.program());
  TakeSource(&model);
  model.strategy = std::move(*message_.mutable_strategy());
  model.op_lists = std::move(*message_.mutable_op_lists());
  model.origins.assign(message_.origin().begin(), message_.origin().end());
  HT_RETURN_IF_ERROR(TakeReport(&model));
  model.target = message_.target();
  model.fingerprint = message_.fingerprint();
  return model;
}

// They differ from run to run.
void ClearTimes(google::protobuf::RepeatedPtrField<proto::PassRow>* passes) {
  for (proto::PassRow& pass : *passes) {
    pass.clear_ms();
    ClearTimes(pass.mutable_pass());
  }
}

}  // namespace

bool IsCompiledModel(absl::string_view content) {
  // Field 1, the magic word, is always first.
  const absl::string_view magic = kCompiledModelMagic;
  return content.size() > magic.size() + 2 && content[0] == 0x0a &&
         content[1] == static_cast<char>(magic.size()) &&
         absl::StartsWith(content.substr(2), magic);
}

void CompiledModel::SetProgram(std::unique_ptr<Program> owned) {
  program = std::move(owned);
  Packer packer;
  StableHasher hasher;
  Print(*program, [&](absl::string_view part) {
    packer.Append(part);
    hasher.Append(part);
  });
  packed_program = packer.Finish();
  fingerprint = Hex64(hasher.hash());
}

void CompiledModel::SetSource(ModelFile file) {
  Packer packer;
  packer.Append(*file.model);
  KeepSource(std::move(file), packer.Finish());
}

void CompiledModel::KeepSource(ModelFile file, proto::Packed packed) {
  const int ops = file.model->op_size();
  file.op_lines.resize(ops);
  // A copy of the rest frees their memory.
  file.model->mutable_op()->UnsafeArenaExtractSubrange(0, ops, nullptr);
  file.model = ModelMessage(file.model);
  source = std::move(file);
  packed_source = std::move(packed);
}

ModelFile CompiledModel::WholeSource() const {
  ModelFile whole = source;
  const absl::StatusOr<std::string> bytes = Unpack(packed_source);
  HT_CHECK(bytes.ok() && whole.model->ParseFromString(*bytes),
           "the source was packed here, or checked when it was read");
  return whole;
}

absl::StatusOr<std::string> SerializeCompiledModel(const CompiledModel& model) {
  proto::CompiledModel message;
  message.set_magic(kCompiledModelMagic);
  message.set_format_version(kCompiledModelFormat);
  if (model.source.model->loss().denominator_size() > 0) {
    message.add_required_features(std::string(kDenominators));
  }
  if (model.source.model->loss().part_size() > 0) {
    message.add_required_features(std::string(kLossParts));
  }
  message.set_producer(kProducer);
  message.set_target(model.target);
  message.set_source_file(model.source.file);
  PutLines(model.source, &message);
  *message.mutable_strategy() = model.strategy;
  for (const proto::FieldOrigin& origin : model.origins) {
    *message.add_origin() = origin;
  }
  *message.mutable_op_lists() = model.op_lists;
  message.set_state_signature(StateSignature(*model.program));
  PutOpVersions(*model.program, &message);
  PutLibraries(*model.program, &message);
  *message.mutable_packed_program() = model.packed_program;
  *message.mutable_packed_source() = model.packed_source;
  Packer ops;
  model.ops.AppendTo(&ops);
  *message.mutable_packed_ops() = ops.Finish();
  // Bytes of several messages of one type are those of all merged.
  proto::CompileReport passes;
  *passes.mutable_pass() = model.passes;
  ClearTimes(passes.mutable_pass());
  Packer report;
  model.casts.AppendTo(&report);
  report.Append(model.report);
  report.Append(passes);
  *message.mutable_packed_report() = report.Finish();
  message.set_fingerprint(model.fingerprint);
  for (const proto::Packed* part :
       {&message.packed_program(), &message.packed_source(),
        &message.packed_ops(), &message.packed_report()}) {
    HT_RETURN_IF_ERROR(CheckBytes(part->bytes()));
  }
  std::string bytes = ToBytes(message);
  bytes += Checksum(bytes);
  if (static_cast<int64_t>(bytes.size()) > kMaxModelBytes) {
    return ModelError("the compiled model has ", WithCommas(bytes.size()),
                      " bytes; expected at most ", WithCommas(kMaxModelBytes),
                      ", which is what is read again; split the model");
  }
  return bytes;
}

absl::StatusOr<CompiledModel> ParseCompiledModel(absl::string_view content,
                                                 absl::string_view file,
                                                 absl::string_view target) {
  return Reader(content, file).Run(target);
}

absl::Status OtherTargetError(absl::string_view file, absl::string_view target,
                              absl::string_view expected) {
  // Where no device is found, naming it says why.
  const bool device_missed =
      expected == CpuTarget().name && target != CpuTarget().name;
  return ModelError(file, ": expected a model compiled for ", expected,
                    ", found one for ", target,
                    "; compile it again: halftone compile ", ShellWord(file),
                    " --target ", expected, " -o ", ShellWord(file),
                    device_missed ? "; or name the GPU: --gpus 0" : "");
}

std::string StateSignature(const Program& program) {
  std::vector<std::string> lines;
  for (int i = 0; i < program.num_cells(); ++i) {
    const Cell& cell = program.cell(CellId(i));
    if (cell.kind != CellKind::kParameter &&
        cell.kind != CellKind::kStatistic && cell.kind != CellKind::kSlot &&
        cell.kind != CellKind::kAverage) {
      continue;
    }
    std::string line = absl::StrCat(cell.name.size(), " ", cell.name);
    for (const Dim& dim : cell.type.dims) {
      absl::StrAppend(&line, " ", dim.coefficient());
    }
    lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return Hex64(StableHash(text));
}

}  // namespace halftone
