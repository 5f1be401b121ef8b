// What a report says of numbers that a low dtype does not hold, and of low ops
// that cost more than they save: notes N1, N2, N3 and C1.
#ifndef HALFTONE_PASSES_NUMBER_NOTES_H_
#define HALFTONE_PASSES_NUMBER_NOTES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

struct NumberNote {
  absl::string_view code;
  std::vector<std::string> ops;     // all that it is about
  std::vector<std::string> labels;  // of each: "mask.bias (1e+09: inf)"
  std::string rest;                 // what is said behind the labels
};

// Of an entry as insertion left it, each code at most once; no ops: nothing to
// say.
// N1, constants outside f16: a finite number that an op writes as it is (a
//   fill, a border, a factor or summand) into f16, larger than f16's largest or
//   so small that it becomes 0.
// N2, long sums in f16: reduce_sum and cumsum of kLongSum elements or more of
//   a sample.
// N3, steps that lose what one op keeps: a logarithm, or a loss that takes it,
//   of a sigmoid or softmax, and a softmax of a softmax.
std::vector<NumberNote> NumberNotes(const Block& block);
inline constexpr int kLongSum = 4096;

// Low ops that no product of matrices is among, joined through low values: what
// they save in bytes against the casts around them that stay.
class IslandNotes {
 public:
  // As insertion left it.
  void AtInsertion(const Block& block);
  // C1, if casts that are left move more than is saved.
  NumberNote AtEnd(const Block& block) const;

 private:
  struct Island {
    std::vector<std::string> ops;
    std::vector<NameId> casts;
    int64_t saved = 0;  // bytes
  };
  std::vector<Island> islands_;  // in the order of their first ops
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_NUMBER_NOTES_H_
