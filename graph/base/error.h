// Errors that a file, a user, a peer or a driver can cause.
//
// Every such error is an absl::Status whose message names the place (file and
// line, op, slot), what was expected, what was found and what to do. The class
// of the error travels in a payload and decides the process's exit code.
#ifndef HALFTONE_GRAPH_BASE_ERROR_H_
#define HALFTONE_GRAPH_BASE_ERROR_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {

// The exit codes of every verb; 128 + n for signal n.
enum class ExitCode : int {
  kOk = 0,
  kModel = 1,
  kUsage = 2,
  kDiffer = 3,
  kCompilerBug = 4,
  kDiverged = 5,
  kOutOfMemory = 6,
  kCommunication = 7,
  kCheckpoint = 8,
  kDevice = 9,
};

struct ExitCodeDoc {
  ExitCode code;
  absl::string_view text;  // what each stands for
};
absl::Span<const ExitCodeDoc> ExitCodeDocs();

absl::Status MakeError(ExitCode code, absl::string_view message);

// An error of each class; `parts` are joined as by absl::StrCat.
template <typename... Parts>
absl::Status ModelError(const Parts&... parts) {
  return MakeError(ExitCode::kModel, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status UsageError(const Parts&... parts) {
  return MakeError(ExitCode::kUsage, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status CompilerBug(const Parts&... parts) {
  return MakeError(ExitCode::kCompilerBug, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status DivergedError(const Parts&... parts) {
  return MakeError(ExitCode::kDiverged, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status OutOfMemoryError(const Parts&... parts) {
  return MakeError(ExitCode::kOutOfMemory, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status CommunicationError(const Parts&... parts) {
  return MakeError(ExitCode::kCommunication, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status CheckpointError(const Parts&... parts) {
  return MakeError(ExitCode::kCheckpoint, absl::StrCat(parts...));
}
template <typename... Parts>
absl::Status DeviceError(const Parts&... parts) {
  return MakeError(ExitCode::kDevice, absl::StrCat(parts...));
}

// The exit code that `status` stands for. A status without a class (made by a
// library) counts as a compiler bug if it is kInternal, else as kModel.
ExitCode ExitCodeOf(const absl::Status& status);

// The same status with `context` and ": " before its message.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

}  // namespace halftone

#define HT_CONCAT_INNER_(a, b) a##b
#define HT_CONCAT_(a, b) HT_CONCAT_INNER_(a, b)

// Returns from the enclosing function if `expr` is not OK.
#define HT_RETURN_IF_ERROR(expr)             \
  do {                                       \
    absl::Status ht_status_ = (expr);        \
    if (!ht_status_.ok()) return ht_status_; \
  } while (false)

// HT_ASSIGN_OR_RETURN(auto x, MakeX()): declares or assigns, or returns the
// error.
#define HT_ASSIGN_OR_RETURN(lhs, expr) \
  HT_ASSIGN_OR_RETURN_INNER_(HT_CONCAT_(ht_statusor_, __LINE__), lhs, expr)
#define HT_ASSIGN_OR_RETURN_INNER_(var, lhs, expr) \
  auto var = (expr);                               \
  if (!var.ok()) return var.status();              \
  lhs = std::move(var).value()

#endif  // HALFTONE_GRAPH_BASE_ERROR_H_
