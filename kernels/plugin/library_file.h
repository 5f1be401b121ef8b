// Opening the file of a library of ops.
#ifndef HALFTONE_KERNELS_PLUGIN_LIBRARY_FILE_H_
#define HALFTONE_KERNELS_PLUGIN_LIBRARY_FILE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/plugin/halftone_op_abi.h"

namespace halftone {
namespace kernels {

// Opens it for good and hands out what it declares, whose version and sizes
// fit this program. Errors: kDevice if the file is not there, or another
// library that it needs; kModel if it is no library of ops, or one for another
// version of them, or throws while it is opened.
absl::StatusOr<const HalftoneOpLibrary*> OpenLibraryFile(
    const std::string& path);

// Runs `look` in a child process, where a library may do to itself and to the
// process what it wants. Its error, or (kModel) how the child ended without
// one: by a signal, by exit(), or not at all. `path` is for errors.
absl::Status TryInChild(const std::string& path,
                        const std::function<absl::Status()>& look);

}  // namespace kernels
}  // namespace halftone

#endif  // HALFTONE_KERNELS_PLUGIN_LIBRARY_FILE_H_
