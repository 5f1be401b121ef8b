// What a name of a compiled model stands for where it is no op of the model:
// a feed, a cell, or something that the passes made.
#ifndef HALFTONE_TOOLS_REPORT_EXPLAIN_SUBJECT_H_
#define HALFTONE_TOOLS_REPORT_EXPLAIN_SUBJECT_H_

#include <string>
#include <vector>

#include "graph/io/compiled_model.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace tools {

struct Subject {
  std::string text;  // lines
  nlohmann::ordered_json json;
};

// The feed of that name, implicit ones ("@schedule") included; no text if
// there is none.
Subject FeedSubject(const CompiledModel& model, const std::string& name);
// The cell of that name: what reads it, what reduces its gradient, what
// updates it and when.
Subject CellSubject(const CompiledModel& model, const std::string& name);
// The op of that name, or the one that makes that value, in the finished
// program.
Subject ProgramSubject(const CompiledModel& model, const std::string& name);

// All names that these know.
std::vector<std::string> SubjectNames(const CompiledModel& model);

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_REPORT_EXPLAIN_SUBJECT_H_
