// Every format that is read, and what peers send, as one function of bytes
// each: for our own mutations (targets_test.cc) and for libFuzzer
// (fuzzer_main.cc).
#ifndef HALFTONE_TESTS_FUZZ_TARGETS_H_
#define HALFTONE_TESTS_FUZZ_TARGETS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/error.h"

namespace halftone {

struct FuzzTarget {
  absl::string_view name;
  bool text;                            // edits of words and lines make sense
  ExitCode code;                        // of what is refused
  std::vector<std::string> (*seeds)();  // sound ones
  absl::Status (*read)(const std::string& content);
};

absl::Span<const FuzzTarget> FuzzTargets();
// Null: there is none of that name.
const FuzzTarget* FindFuzzTarget(absl::string_view name);

}  // namespace halftone

#endif  // HALFTONE_TESTS_FUZZ_TARGETS_H_
