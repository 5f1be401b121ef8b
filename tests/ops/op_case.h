// Conformance cases of an op: literal inputs, attributes and outputs.
//
//   # comment
//   tolerance 2 1e-7          of the cases that follow (see OpCase)
//   row_major Filter          slots of rank 4 that have no other layout
//   case ragged_rows
//   only T f16 bf16           dtypes of a type variable; default: all
//   world 4                   ranks of the bind context
//   in X [2,3] 1 2 3 4 5 6    one line per value; a list slot has several
//     7 8                     values go on in lines that begin with a number
//   attr axis 0
//   out Out [2,3] 1 nan -inf 2 0.5 0
//   gradient X                slots whose gradient is checked
//
// Values are rounded to the dtype that they are stored in.
#ifndef HALFTONE_TESTS_OPS_OP_CASE_H_
#define HALFTONE_TESTS_OPS_OP_CASE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype.h"
#include "graph/ir/attr.h"
#include "graph/schema/op_schema.h"

namespace halftone {

struct CaseTensor {
  std::string slot;
  std::vector<int64_t> dims;
  std::vector<double> values;
};

// How far a result may be from the expected value, rounded to its dtype: so
// many units in the last place of an f32 result (one of a 16-bit result, which
// such a difference may tip over), and so much in any dtype.
struct Tolerance {
  double ulps = 2;
  double absolute = 0;
};

struct OpCase {
  std::string name;
  int line = 0;
  std::vector<CaseTensor> in, out;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  std::map<std::string, std::vector<DType>> only;
  std::vector<std::string> gradient;
  int world = 1;
  Tolerance tolerance;
};

struct CaseFile {
  const OpSchema* schema = nullptr;
  std::string path;
  std::vector<std::string> row_major;
  std::vector<OpCase> cases;
};

// Errors name file and line.
absl::StatusOr<CaseFile> ParseCaseFile(absl::string_view content,
                                       const std::string& path,
                                       const OpSchema& schema);
// Reads tests/ops/cases/<op>.txt.
absl::StatusOr<CaseFile> ReadCaseFile(const std::string& op);

// The names of the case files: ops that have one, sorted.
std::vector<std::string> CaseFileOps();

}  // namespace halftone

#endif  // HALFTONE_TESTS_OPS_OP_CASE_H_
