// What a report says of a loss that adds means over different counts: note P9.
#ifndef HALFTONE_PASSES_LOSS_NOTES_H_
#define HALFTONE_PASSES_LOSS_NOTES_H_

#include <string>
#include <vector>

#include "graph/ir/program.h"

namespace halftone {
namespace passes {

struct LossNote {
  std::string text;              // empty: nothing to say
  std::vector<std::string> ops;  // that make a mean over another count
};

// Of a program before any pass: means in the loss that its `mean_over`, `mask`
// and denominators do not weigh over ranks as one device does. Means that are
// certain alone: those behind sums, products and casts.
LossNote NoteOnMeans(const Program& program);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOSS_NOTES_H_
