// What --fetch asks for, of a compiled program.
#ifndef HALFTONE_RUNTIME_TRAIN_RESOLVE_FETCHES_H_
#define HALFTONE_RUNTIME_TRAIN_RESOLVE_FETCHES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/program.h"
#include "runtime/train/fetches.h"

namespace halftone {
namespace runtime {

// As ParseFetches takes them, with what is kept for each: for `w.grad` of a
// parameter w the reduced gradient that the update reads, since unscaling is
// folded into the update, and of its exponents what was reduced, as it was; for
// anything else the value of that name.
//
// A name with * or ?, if no value is called so, is a glob: a fetch for each
// gradient of a parameter that it matches; if it matches none, for each value
// of the train entry whose dtype the kind of fetch takes. So "*.grad" is what
// is updated from, and no activation's gradient is kept for it. `unlowered`:
// the program as lowering found it, of whose values these are, for they may be
// in fusions or called otherwise now; null: this one.
// Errors (kUsage): a glob that matches nothing; exponents of a value that has
// none.
absl::StatusOr<std::vector<Fetch>> ResolveFetches(
    const Program& program, const std::vector<std::string>& texts,
    const Program* unlowered = nullptr);
// Whether one of them has a * or ?.
bool HasGlob(const std::vector<std::string>& texts);

// The values that an executor must keep.
struct KeptValues {
  // In each step: what is needed to say whether a bad gradient has inf or nan.
  std::vector<std::string> always;
  // In steps that show what was fetched: those asked for.
  std::vector<std::string> fetched;
};
absl::StatusOr<KeptValues> ValuesToKeep(const Program& program,
                                        const std::vector<std::string>& texts);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_TRAIN_RESOLVE_FETCHES_H_
