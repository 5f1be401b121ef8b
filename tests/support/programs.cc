#include "tests/support/programs.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/child.h"

namespace halftone {

std::string FindProgram(const char* variable, const std::string& name) {
  const char* given = getenv(variable);
  if (given != nullptr) return given;
  const char* path = getenv("PATH");
  const std::string folders =
      absl::StrCat(path == nullptr ? "" : path, ":/usr/sbin:/usr/bin");
  for (const auto folder : absl::StrSplit(folders, ':', absl::SkipEmpty())) {
    // Open MPI takes its prefix from the name: of /bin/mpirun there is none.
    char real[PATH_MAX];
    if (realpath(std::string(folder).c_str(), real) == nullptr) continue;
    const std::string full = absl::StrCat(real, "/", name);
    if (access(full.c_str(), X_OK) == 0) return full;
  }
  return "";
}

std::string FindPython(const char* variable, const std::string& module) {
  const std::string python = FindProgram(variable, "python3");
  if (python.empty()) return "";
  const Result tried =
      RunProgram({python, "-c",
                  absl::StrCat("import importlib.util as u, sys; "
                               "sys.exit(0 if u.find_spec('",
                               module, "') else 1)")});
  return tried.exit_code() == 0 ? python : "";
}

}  // namespace halftone
