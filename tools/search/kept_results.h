// Results of trials that stay in a directory: what was stopped goes on where it
// was.
#ifndef HALFTONE_TOOLS_SEARCH_KEPT_RESULTS_H_
#define HALFTONE_TOOLS_SEARCH_KEPT_RESULTS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/base/disk/directory.h"
#include "graph/base/disk/directory_lock.h"

namespace halftone {
namespace tools {

// What became of one run of a program; none: it diverged, or is not finite.
using TrialValue = std::optional<double>;

class KeptResults {
 public:
  // Takes the directory, which is made, for itself and reads what lies there.
  // `verb` names the files and is who errors speak of. `question`: all that
  // results depend on, by name; a directory that holds results of another one
  // is an error (kUsage) that names the difference first found.
  static absl::StatusOr<KeptResults> Open(
      const std::string& path, const std::string& verb,
      const std::map<std::string, std::string>& question);

  // Null: there is none.
  const TrialValue* Find(const std::string& trial) const;
  // Lasts when it returns.
  absl::Status Keep(const std::string& trial, TrialValue value);

  const Directory& directory() const { return directory_; }

 private:
  KeptResults(DirectoryLock lock, Directory directory)
      : lock_(std::move(lock)), directory_(std::move(directory)) {}
  absl::Status Read();

  DirectoryLock lock_;
  Directory directory_;
  std::map<std::string, TrialValue> results_;
};

}  // namespace tools
}  // namespace halftone

#endif  // HALFTONE_TOOLS_SEARCH_KEPT_RESULTS_H_
