// Errors that do not depend on each other, told together.
#ifndef HALFTONE_GRAPH_BASE_ERROR_LIST_H_
#define HALFTONE_GRAPH_BASE_ERROR_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace halftone {

class ErrorList {
 public:
  // Keeps an error, in order; an OK status and what only follows from another
  // error are left out. Returns whether `status` is OK.
  bool Add(const absl::Status& status);
  // The status of what cannot be judged because of another error.
  static absl::Status Follows();

  bool empty() const { return messages_.empty(); }
  // OK if there are none; else all of them, a line each, of the class of the
  // first; of many the first 20 and how many more there are.
  absl::Status ToStatus() const;

 private:
  static constexpr size_t kMost = 20;

  absl::Status first_;
  std::vector<std::string> messages_;
  int64_t more_ = 0;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_ERROR_LIST_H_
