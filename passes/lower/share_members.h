// What equal ops leave behind in collectives: a value that several parameters
// have as their gradient.
#ifndef HALFTONE_PASSES_LOWER_SHARE_MEMBERS_H_
#define HALFTONE_PASSES_LOWER_SHARE_MEMBERS_H_

#include "graph/ir/program.h"
#include "passes/rewrite/rewrite.h"

namespace halftone {
namespace passes {

// A value is a member of one collective of its kind, and once: members lie
// side by side, and what is summed once need not travel twice. Where it is a
// member again, of the same op or of a later one, the readers of the second
// result read the first. A collective without members left goes.
bool ShareMembers(Block& block, HeldValues& held);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_LOWER_SHARE_MEMBERS_H_
