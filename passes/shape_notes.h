// What a report says of dims that tensor cores do not take: notes D8 and D9.
#ifndef HALFTONE_PASSES_SHAPE_NOTES_H_
#define HALFTONE_PASSES_SHAPE_NOTES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/program.h"

namespace halftone {
namespace passes {

struct ShapeNote {
  absl::string_view code;
  std::string text;
  std::vector<std::string> ops;  // all that it is about
};

class ShapeNotes {
 public:
  // Collects the low convolutions and products whose dims are no multiples
  // of 8.
  void AtInsertion(const Block& block);
  // Tells those that have been padded since.
  void AtEnd(const Block& block);

  std::vector<ShapeNote> Notes() const;

 private:
  struct Ragged {
    NameId op;
    std::string name;
    std::string dims;          // "3 channels"
    Dim before;                // its images' channels
    int64_t channels = 0;      // after padding; 0: none
    int64_t sample_bytes = 0;  // of the padded image
  };
  std::vector<Ragged> ops_;  // in program order
};

}  // namespace passes
}  // namespace halftone

#endif  // HALFTONE_PASSES_SHAPE_NOTES_H_
