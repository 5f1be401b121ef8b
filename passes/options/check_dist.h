// What fields of `dist` have to do with each other and with the rest.
#ifndef HALFTONE_PASSES_OPTIONS_CHECK_DIST_H_
#define HALFTONE_PASSES_OPTIONS_CHECK_DIST_H_

#include "passes/options/resolver.h"
#include "passes/options/strategy_checker.h"

namespace halftone {
namespace passes {

// Refuses what cannot be combined, both fields named.
void CheckDist(const Resolver& resolver, Checker& check);

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_CHECK_DIST_H_
