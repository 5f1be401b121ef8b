// Ends process groups when the launcher itself is killed.
#ifndef HALFTONE_RUNTIME_LAUNCH_GROUP_KEEPER_H_
#define HALFTONE_RUNTIME_LAUNCH_GROUP_KEEPER_H_

#include <sys/types.h>

#include <vector>

#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

// A rank dies with the launcher by itself, but what the rank has started (a
// shell's command, a data worker) would stay. A small process of its own holds
// one end of a pipe; when the other end closes, it kills the groups that it
// was told of.
class GroupKeeper {
 public:
  // Forks. SIGPIPE is to be ignored: one that was killed is replaced.
  GroupKeeper() { Start(); }
  ~GroupKeeper();
  GroupKeeper(const GroupKeeper&) = delete;
  GroupKeeper& operator=(const GroupKeeper&) = delete;

  void Add(pid_t group);
  void Remove(pid_t group);

 private:
  void Start();
  // False: the keeper is gone.
  bool Tell(pid_t group);
  void StartAgain();

  std::vector<pid_t> groups_;  // that it knows of
  Socket pipe_;
  pid_t keeper_ = -1;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_GROUP_KEEPER_H_
