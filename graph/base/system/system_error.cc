#include "graph/base/system/system_error.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace halftone {

absl::Status SystemError(ExitCode code, int error, absl::string_view what,
                         absl::string_view todo) {
  return MakeError(error == ENOMEM ? ExitCode::kOutOfMemory : code,
                   absl::StrCat(what, ": ", std::strerror(error),
                                todo.empty() ? "" : "; ", todo));
}

absl::Status Reclassified(const absl::Status& status, ExitCode code) {
  const bool as_it_is =
      status.ok() || ExitCodeOf(status) == ExitCode::kOutOfMemory;
  return as_it_is ? status : MakeError(code, status.message());
}

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  // More was asked for than any machine has.
  if (dynamic_cast<const std::length_error*>(&error) != nullptr) return true;
  const auto* refused = dynamic_cast<const std::system_error*>(&error);
  return refused != nullptr &&
         (refused->code() == std::errc::not_enough_memory ||
          refused->code() == std::errc::resource_unavailable_try_again);
}

}  // namespace halftone
