// Replaces one value of a JSON text by what its reader does not expect.
#ifndef HALFTONE_TESTS_FUZZ_JSON_MUTATOR_H_
#define HALFTONE_TESTS_FUZZ_JSON_MUTATOR_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace halftone {

// By `seed`: a value anywhere in the tree becomes a number out of any range,
// another type, a text that is no number, nothing at all, or a nest of up to
// 200,000 lists or objects. `text` is sound.
std::string MutateJson(uint64_t seed, absl::string_view text);

}  // namespace halftone

#endif  // HALFTONE_TESTS_FUZZ_JSON_MUTATOR_H_
