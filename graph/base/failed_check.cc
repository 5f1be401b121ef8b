#include "graph/base/failed_check.h"

#include <utility>

#include "absl/base/internal/raw_logging.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace halftone {
namespace {

thread_local OnFailedCheck* innermost = nullptr;

}  // namespace

OnFailedCheck::OnFailedCheck(std::function<void(const std::string& what)> act)
    : act_(std::move(act)), outer_(innermost) {
  absl::raw_logging_internal::RegisterAbortHook(&OnFailedCheck::Act);
  innermost = this;
}

OnFailedCheck::~OnFailedCheck() { innermost = outer_; }

// `begin`: the whole line, ended by a zero; what follows its prefix is the
// check's own.
void OnFailedCheck::Act(const char* file, int line, const char* /*begin*/,
                        const char* prefix_end, const char* /*end*/) {
  OnFailedCheck* const scope = innermost;
  if (scope == nullptr) return;
  innermost = nullptr;
  scope->act_(absl::StrCat(file, ":", line, ": ",
                           absl::StripAsciiWhitespace(prefix_end)));
}

}  // namespace halftone
