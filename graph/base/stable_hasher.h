// The hash of bytes that come in parts.
#ifndef HALFTONE_GRAPH_BASE_STABLE_HASHER_H_
#define HALFTONE_GRAPH_BASE_STABLE_HASHER_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"

namespace halftone {

// That of all parts is StableHash (graph/base/text.h) of them joined.
class StableHasher {
 public:
  StableHasher();
  ~StableHasher();
  void Append(absl::string_view part);
  uint64_t hash() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_STABLE_HASHER_H_
