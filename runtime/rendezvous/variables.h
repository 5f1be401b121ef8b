// Reading launchers' variables: numbers, pairs, and words for errors.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_VARIABLES_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_VARIABLES_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rendezvous/environment.h"

namespace halftone {
namespace runtime {

class Variables {
 public:
  explicit Variables(const Environment& env) : env_(env) {}

  // Set and not empty.
  bool Has(const std::string& name) const { return !Text(name).empty(); }
  std::string Text(const std::string& name) const;
  // Nothing if not set; an error if not a whole number of 0 or more.
  absl::StatusOr<std::optional<int>> Number(const std::string& name) const;
  absl::StatusOr<int> NumberOr(const std::string& name, int fallback) const;
  // A port, of 0 to 65535: 0, too, leaves the choice to who asks.
  absl::StatusOr<int> PortOr(const std::string& name, int fallback) const;
  // Both numbers, or nothing; an error if only one is there (`launcher` sets
  // both), the first is not below the second, or that above kMostRanks.
  struct Pair {
    int rank;
    int size;
  };
  absl::StatusOr<std::optional<Pair>> RankOf(const std::string& rank,
                                             const std::string& size,
                                             const std::string& launcher) const;
  // "RANK=1 WORLD_SIZE=2" of those that are set.
  std::string Show(std::initializer_list<const char*> names) const;

 private:
  const Environment& env_;
};

// A line of an explanation: what, its value, where from.
std::string Explain(const std::string& what, const std::string& value,
                    const std::string& from);

// Takes MASTER_ADDR and MASTER_PORT into `place`, if they are there. Otherwise
// leaves the host empty if all ranks are on this machine; if not, an error
// that says how to set them with `launcher`.
absl::Status TakeMaster(const Variables& variables, const std::string& launcher,
                        RankPlacement& place);

// The launchers, innermost first; nothing if their variables are not there.
absl::StatusOr<std::optional<RankPlacement>> FromHalftone(const Variables& v);
absl::StatusOr<std::optional<RankPlacement>> FromTorchrun(const Variables& v);
absl::StatusOr<std::optional<RankPlacement>> FromFleetrun(const Variables& v);
absl::StatusOr<std::optional<RankPlacement>> FromOpenMpi(const Variables& v);
absl::StatusOr<std::optional<RankPlacement>> FromMpich(const Variables& v);
absl::StatusOr<std::optional<RankPlacement>> FromSlurm(const Variables& v);
// One launcher or rank per node: PET_*, and RANK/WORLD_SIZE without LOCAL_RANK.
absl::StatusOr<std::optional<NodePlacement>> FromNodeVariables(
    const Variables& v);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_VARIABLES_H_
