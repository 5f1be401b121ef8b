// Expected against found values, in units of the result's dtype.
#ifndef HALFTONE_TESTS_OPS_COMPARE_H_
#define HALFTONE_TESTS_OPS_COMPARE_H_

#include <string>
#include <vector>

#include "graph/base/dtype.h"
#include "tests/ops/op_case.h"

namespace halftone {

// Empty if every found value is within the tolerance of the expected one,
// rounded to the dtype; else the first that is not. NaNs equal each other,
// infinities only themselves; integers are compared exactly.
std::string Difference(DType dtype, const std::vector<double>& expected,
                       const std::vector<double>& found,
                       const Tolerance& tolerance);

// Spacing of the dtype's numbers around x; 0 for integers.
double UnitInTheLastPlace(DType dtype, double x);

}  // namespace halftone

#endif  // HALFTONE_TESTS_OPS_COMPARE_H_
