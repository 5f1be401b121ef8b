#include "graph/base/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace halftone {
namespace {

constexpr char kPayload[] = "halftone/exit_code";

constexpr ExitCodeDoc kExitCodes[] = {
    {ExitCode::kOk, "ok"},
    {ExitCode::kModel,
     "model, strategy or data error; an output that cannot be written; a "
     "compiled model of a newer version or other target"},
    {ExitCode::kUsage, "a wrong verb, flag or argument"},
    {ExitCode::kDiffer, "a check failed, or the programs differ"},
    {ExitCode::kCompilerBug,
     "a bug of the compiler; please report it with the folder that the error "
     "names"},
    {ExitCode::kDiverged, "the training diverged: the stop rule ended it"},
    {ExitCode::kOutOfMemory,
     "out of memory: a plan that does not fit, or a failed allocation"},
    {ExitCode::kCommunication,
     "communication failure: a rank that never arrived, vanished, hung or "
     "runs another program; a port in use"},
    {ExitCode::kCheckpoint,
     "a checkpoint that cannot be read, or the run's last one that cannot "
     "be written"},
    {ExitCode::kDevice, "a device or library that is not there"},
};

absl::StatusCode CanonicalCode(ExitCode code) {
  switch (code) {
    case ExitCode::kOk:
      return absl::StatusCode::kOk;
    case ExitCode::kModel:
    case ExitCode::kUsage:
      return absl::StatusCode::kInvalidArgument;
    case ExitCode::kDiffer:
      return absl::StatusCode::kFailedPrecondition;
    case ExitCode::kCompilerBug:
      return absl::StatusCode::kInternal;
    case ExitCode::kDiverged:
      return absl::StatusCode::kAborted;
    case ExitCode::kOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case ExitCode::kCommunication:
      return absl::StatusCode::kUnavailable;
    case ExitCode::kCheckpoint:
      return absl::StatusCode::kDataLoss;
    case ExitCode::kDevice:
      return absl::StatusCode::kNotFound;
  }
  return absl::StatusCode::kUnknown;
}

}  // namespace

absl::Span<const ExitCodeDoc> ExitCodeDocs() { return kExitCodes; }

absl::Status MakeError(ExitCode code, absl::string_view message) {
  absl::Status status(CanonicalCode(code), message);
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(code))));
  return status;
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  if (auto payload = status.GetPayload(kPayload)) {
    int code = 0;
    if (absl::SimpleAtoi(std::string(*payload), &code)) {
      return static_cast<ExitCode>(code);
    }
  }
  return status.code() == absl::StatusCode::kInternal ? ExitCode::kCompilerBug
                                                      : ExitCode::kModel;
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&annotated](absl::string_view url, const absl::Cord& payload) {
        annotated.SetPayload(url, payload);
      });
  return annotated;
}

}  // namespace halftone
