// How the checks of a strategy say what is wrong with it.
#ifndef HALFTONE_PASSES_OPTIONS_STRATEGY_CHECKER_H_
#define HALFTONE_PASSES_OPTIONS_STRATEGY_CHECKER_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/text.h"
#include "passes/options/resolver.h"

namespace halftone {
namespace passes {

class Checker {
 public:
  Checker(const Resolver& resolver, ErrorList* errors)
      : resolver_(resolver), errors_(*errors) {}

  void Refuse(absl::string_view path, absl::string_view message,
              int member = -1) {
    errors_.Add(resolver_.Error(path, message, member));
  }
  // A field of a member of a list of messages: "optimizer.group[0].beta1".
  void RefuseIn(absl::string_view list, int member, absl::string_view field,
                absl::string_view message) {
    const std::string path = absl::StrCat(list, "[", member, "].", field);
    errors_.Add(
        OriginError(resolver_.OriginIn(list, member, path), path, message));
  }
  // Written as what must hold: NaN fails every comparison.
  void Number(absl::string_view path, double value, bool holds,
              absl::string_view expected, int member = -1) {
    if (holds) return;
    Refuse(path,
           absl::StrCat("expected ", expected, ", found ", ExactDouble(value)),
           member);
  }

 private:
  const Resolver& resolver_;
  ErrorList& errors_;
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_OPTIONS_STRATEGY_CHECKER_H_
