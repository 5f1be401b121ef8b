#include "tests/ops/compare.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/base/text.h"
#include "kernels/testing/kernel_run.h"

namespace halftone {

double UnitInTheLastPlace(DType dtype, double x) {
  int digits = 0, lowest = 0;  // of the significand; exponent of the least unit
  switch (dtype) {
    case DType::kF32:
      digits = 24, lowest = -149;
      break;
    case DType::kF16:
      digits = 11, lowest = -24;
      break;
    case DType::kBF16:
      digits = 8, lowest = -133;
      break;
    case DType::kF64:
      digits = 53, lowest = -1074;
      break;
    default:
      return 0;
  }
  if (x == 0 || !std::isfinite(x)) return std::ldexp(1.0, lowest);
  return std::ldexp(1.0, std::max(std::ilogb(x) + 1 - digits, lowest));
}

std::string Difference(DType dtype, const std::vector<double>& expected,
                       const std::vector<double>& found,
                       const Tolerance& tolerance) {
  if (expected.size() != found.size()) {
    return absl::StrCat("expected ", expected.size(), " values, found ",
                        found.size());
  }
  const std::vector<double> rounded = kernels::Rounded(dtype, expected);
  const bool low = dtype == DType::kF16 || dtype == DType::kBF16;
  const double ulps = low ? std::min(tolerance.ulps, 1.0) : tolerance.ulps;
  for (size_t i = 0; i < found.size(); ++i) {
    const double e = rounded[i], f = found[i];
    if (e == f || (std::isnan(e) && std::isnan(f))) continue;
    const double unit = UnitInTheLastPlace(dtype, e);
    const double allowed = unit == 0 ? 0 : ulps * unit + tolerance.absolute;
    if (std::isfinite(e) && std::abs(e - f) <= allowed) continue;
    return absl::StrCat("element ", i, ": expected ", ExactDouble(e),
                        ", found ", ExactDouble(f), ", allowed +-", allowed,
                        " (", Name(dtype), ")");
  }
  return "";
}

}  // namespace halftone
