// For tests that need two machines: two network namespaces of this one, with a
// cable of the kernel's (veth) between them.
#ifndef HALFTONE_TESTS_SUPPORT_TWO_NODES_H_
#define HALFTONE_TESTS_SUPPORT_TWO_NODES_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/child.h"

namespace halftone {

class TwoNodes {
 public:
  TwoNodes() = default;
  TwoNodes(const TwoNodes&) = delete;
  TwoNodes& operator=(const TwoNodes&) = delete;
  ~TwoNodes();

  // Makes them, as root or in a user namespace that this process enters for
  // good. Empty, or why this machine does not permit it.
  std::string Make();
  // The command that does there what `command` (a path and arguments) does.
  std::vector<std::string> On(int node,
                              const std::vector<std::string>& command) const;
  static std::string AddressOf(int node);
  // What is sent from now on is lost, and nobody is told.
  void CutCable();

 private:
  std::vector<Child> holders_;  // the processes that keep a namespace
};

// Processes other than this one whose command line has `mark`.
std::vector<pid_t> ProcessesOf(const std::string& mark);

}  // namespace halftone

#endif  // HALFTONE_TESTS_SUPPORT_TWO_NODES_H_
