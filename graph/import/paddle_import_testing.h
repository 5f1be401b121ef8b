// Programs of Paddle's in a few words, and what becomes of them, for tests.
#ifndef HALFTONE_GRAPH_IMPORT_PADDLE_IMPORT_TESTING_H_
#define HALFTONE_GRAPH_IMPORT_PADDLE_IMPORT_TESTING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/import/paddle_import.h"

namespace halftone {
namespace paddle_testing {

// A variable; `flags`: more of VarDesc.
std::string Var(const std::string& name, const std::string& dims,
                const std::string& flags = "",
                const std::string& type = "FP32");
std::string Param(const std::string& name, const std::string& dims);
// "relu" "X:x" "Out:y": an op; what follows `attrs` is text of OpDesc.
std::string Op(const std::string& type, const std::vector<std::string>& in,
               const std::vector<std::string>& out,
               const std::string& attrs = "", int role = 0);
// An attribute, "1, 2": text of OpDesc.
std::string Longs(const char* name, const std::string& values);

// Of one block.
paddle::ProgramDesc ProgramOf(const std::string& block);
absl::StatusOr<PaddleModel> Import(const std::string& block,
                                   PaddleOptions options = {});
// As text, less the model's name; or the error.
std::string Text(const std::string& block, const PaddleOptions& options = {});

}  // namespace paddle_testing
}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_PADDLE_IMPORT_TESTING_H_
