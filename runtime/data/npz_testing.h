// .npz files, good and bad, for tests.
#ifndef HALFTONE_RUNTIME_DATA_NPZ_TESTING_H_
#define HALFTONE_RUNTIME_DATA_NPZ_TESTING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {
namespace runtime {

// An .npy file: descr is "<f4", shape "2, 3".
struct NpyFile {
  std::string descr, shape, data;
  int version = 1;
  bool fortran_order = false;

  std::string Serialize() const;
};

// The bytes of the values.
template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

struct ZipFile {
  struct Member {
    std::string name, content;
    bool deflate = false;
    bool in_64_bits = false;  // sizes and offset in the extension
  };
  std::vector<Member> members;

  std::string Serialize() const;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_NPZ_TESTING_H_
