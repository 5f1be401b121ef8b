// NumPy's .npy: one array.
#ifndef HALFTONE_RUNTIME_DATA_NPY_FILE_H_
#define HALFTONE_RUNTIME_DATA_NPY_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/dtype_fwd.h"

namespace halftone {
namespace runtime {

struct NpyArray {
  std::string file;  // for messages
  char kind = 'f';   // b bool, i signed, u unsigned, f floating-point
  int item_size = 0;
  bool fortran_order = false;
  std::vector<int64_t> dims;
  absl::string_view data;  // little-endian, item_size bytes per element
};

// Versions 1 to 3. The array refers to `content`. `taken`: by the feed that it
// is for, which errors say. Errors (kModel): no .npy file, truncated, too long,
// another byte order, pickled objects, records, elements that are no numbers;
// each says what to do.
absl::StatusOr<NpyArray> ParseNpy(absl::string_view content,
                                  absl::string_view file,
                                  std::optional<DType> taken = std::nullopt);

// "float64[100,3]", with NumPy's names.
std::string Describe(const NpyArray& array);
// NumPy's name of a dtype.
std::string NumpyName(DType dtype);

// The elements in row-major order as `dtype`: a part of `array.data` where that
// is what it is, else made in `*made`. Integers become other integers whose
// values hold all of them, floating-point numbers others, rounded to nearest;
// `*note` then says so. Errors (kModel) name the first value that does not
// fit, and what to do: also where one of both is integer and the other not.
absl::StatusOr<absl::string_view> ElementsAs(const NpyArray& array, DType dtype,
                                             std::string* made,
                                             std::string* note);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_NPY_FILE_H_
