#include "graph/base/error_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/error.h"

namespace halftone {

bool ErrorList::Add(const absl::Status& status) {
  if (status.ok()) return true;
  if (absl::IsCancelled(status)) return false;
  std::string message(status.message());
  if (std::find(messages_.begin(), messages_.end(), message) !=
      messages_.end()) {
    return false;
  }
  if (messages_.empty()) first_ = status;
  if (messages_.size() < kMost) {
    messages_.push_back(std::move(message));
  } else {
    ++more_;
  }
  return false;
}

absl::Status ErrorList::Follows() {
  return absl::CancelledError("follows from another error");
}

absl::Status ErrorList::ToStatus() const {
  if (messages_.size() <= 1) return first_;
  std::string text = absl::StrJoin(messages_, "\n");
  if (more_ > 0) absl::StrAppend(&text, "\nand ", more_, " more errors");
  return MakeError(ExitCodeOf(first_), text);
}

}  // namespace halftone
