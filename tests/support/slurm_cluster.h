// For tests under Slurm: a cluster of two nodes, both this machine, with
// Debian's slurmctld and slurmd in a folder of their own.
#ifndef HALFTONE_TESTS_SUPPORT_SLURM_CLUSTER_H_
#define HALFTONE_TESTS_SUPPORT_SLURM_CLUSTER_H_

#include <map>
#include <string>
#include <vector>

#include "tests/support/child.h"

namespace halftone {

class SlurmCluster {
 public:
  SlurmCluster() = default;
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;
  ~SlurmCluster();

  // Starts it. Empty, or why it does not run here.
  std::string Start();
  // `words[0]` is a program of Slurm's: srun, sbatch ...
  Result Run(const std::vector<std::string>& words) const;

 private:
  std::map<std::string, std::string> Variables() const;

  std::string folder_, config_;
  std::vector<Child> daemons_;
};

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_SLURM_CLUSTER_H_
