// What a model has that cannot be taken, or handed on, told at once.
#ifndef HALFTONE_GRAPH_IMPORT_REFUSALS_H_
#define HALFTONE_GRAPH_IMPORT_REFUSALS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace halftone {

class Refusals {
 public:
  // `what`: an op's type, a feed; `kind`: what is wrong with it; `why`: the
  // same with the values at hand; `place`: where. What is refused for one kind
  // of reason is one line, with its number and the first why and place.
  void Add(absl::string_view what, absl::string_view kind,
           absl::string_view why, absl::string_view place);
  void Add(absl::string_view what, absl::string_view why,
           absl::string_view place) {
    Add(what, why, why, place);
  }

  bool empty() const { return lines_.empty(); }
  // A text for each: "Mod x2: why; first at place".
  std::vector<std::string> Lines() const;
  // OK if there are none; else (kModel) a line for each. `done`: what cannot
  // be done with the model.
  absl::Status ToStatus(absl::string_view file,
                        absl::string_view done = "imported") const;

 private:
  struct Line {
    std::string what, why, place;
    int64_t count = 0;
  };
  std::vector<Line> lines_;
  std::map<std::string, size_t> index_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_REFUSALS_H_
