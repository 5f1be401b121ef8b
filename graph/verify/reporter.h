// What the verifier's rules found.
#ifndef HALFTONE_GRAPH_VERIFY_REPORTER_H_
#define HALFTONE_GRAPH_VERIFY_REPORTER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/ir/program.h"
#include "graph/verify/verify.h"

namespace halftone {
namespace verify {

// Collects violations; text is made only when there is one.
class Reporter {
 public:
  static constexpr int kMost = 20;

  Reporter(const Program& program, Phase phase)
      : program_(program), phase_(phase) {}

  // Of the entry whose violations follow; null: the program's own.
  void SetEntry(const Entry* entry) { entry_ = entry; }
  // "file:line: <parts>".
  template <typename... Parts>
  void At(int line, const Parts&... parts) {
    if (Counts()) Add(line, absl::StrCat(parts...));
  }
  // "file:line: conv1 (conv2d): <parts>".
  template <typename... Parts>
  void AtOp(const Block& block, const Op& op, const Parts&... parts) {
    if (Counts()) Add(op.line, absl::StrCat(Label(block, op), ": ", parts...));
  }
  // A message that names its place itself.
  void Message(absl::string_view message);

  int count() const { return count_; }
  absl::Status ToStatus() const;

 private:
  bool Counts() { return ++count_ <= kMost; }
  void Add(int line, const std::string& message);
  static std::string Label(const Block& block, const Op& op);

  const Program& program_;
  const Phase phase_;
  const Entry* entry_ = nullptr;
  int count_ = 0;
  std::vector<std::string> messages_;
};

}  // namespace verify
}  // namespace halftone

#endif  // HALFTONE_GRAPH_VERIFY_REPORTER_H_
