// Starts the ranks of this machine as processes and looks after them.
#ifndef HALFTONE_RUNTIME_LAUNCH_LAUNCHER_H_
#define HALFTONE_RUNTIME_LAUNCH_LAUNCHER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/rendezvous/environment.h"

namespace halftone {
namespace runtime {

// Tells rank 0 how wide the terminal is on which its stderr ends; not set if
// there is none. (Its own stderr is a pipe.)
inline constexpr char kColumnsVariable[] = "HALFTONE_CONSOLE_COLUMNS";

struct LaunchOptions {
  // What each rank runs; command[0] is a path or is looked up in PATH.
  std::vector<std::string> command;
  // command[0] is this program and the next word a verb that is a rank: it
  // knows our variables, has --out and takes `resume_arguments`. Any other
  // command gets what PyTorch's and Paddle's programs expect.
  bool own_verb = false;
  // How this program was called, for the lines to paste on other nodes.
  std::string self = "halftone";
  // Reader threads of a rank unless the command says --workers; 0: it is a
  // program without any.
  int readers = 0;

  // Ranks on this machine: a number, "auto" (one per GPU, else per core),
  // "gpu", "cpu". Empty: one per entry of `gpus`, else what an operator's
  // variables say, else 1.
  std::string ranks;
  // Physical ids. With CUDA_VISIBLE_DEVICES set they must be members of it.
  std::vector<int> gpus;
  // GPUs that the driver shows to this process, for "auto" and "gpu".
  int visible_gpus = 0;

  // 0 and -1: from an operator's or batch system's variables, else one node.
  int nnodes = 0;
  int node_rank = -1;
  // "HOST:PORT", "HOST" or ":PORT" of node 0; on one node port 0 is a random
  // one. Empty: from the environment; on one node a random port of the
  // loopback.
  std::string master;
  // One address per node instead of nnodes and node_rank: this node's is the
  // one that is an address of this machine.
  std::vector<std::string> ips;
  // A file of mode 0600 with the run's secret, "-": standard input. Empty:
  // HALFTONE_TOKEN or HALFTONE_TOKEN_FILE, else a random one.
  std::string token_file;

  // Logs go to <log_dir>/attempt-K/rank-R.{out,err}, K the first number that is
  // free, and one more with each restart. Empty: <out>/logs where
  // our verb has `--out <out>`, else a new directory under TMPDIR that only
  // this user can use.
  std::string log_dir;
  // Ranks whose output is also shown, each line after "[R] ". Rank 0's always
  // is, as it comes.
  std::vector<int> tee;
  bool tee_all = false;

  // How often to start all ranks again after a failure, with
  // `resume_arguments` added to our verb (unless it has the first of them).
  int max_restarts = 0;
  std::vector<std::string> resume_arguments = {"--resume"};

  // Asked before anything is written or started, where our verb has `--out
  // <out>`: whether a run may go there, or go on there if it `resumes`.
  std::function<absl::Status(const std::string& out, bool resumes)> may_use_out;

  // Tell where ranks, world and address come from, on `out_fd`, as one JSON
  // object if `json`; start nothing.
  bool explain = false;
  bool json = false;

  // Where rank 0's and tee'd output goes, and messages (`err_fd`).
  int out_fd = 1;
  int err_fd = 2;
};

// Runs the command on all ranks of this node, with `env` and what tells each
// rank who it is. Returns the exit code: 0; that of the rank that failed first
// (128 + n for signal n); 7 if a rank hung, or peers elsewhere are gone;
// 128 + n if signal n ended the run, whichever launcher or rank of our own verb
// got it. An error (kUsage, kDevice,
// kCommunication) if the ranks could not be started.
//
// SIGINT, SIGTERM and SIGHUP are handed on to the ranks once; a second one
// kills them. A rank that fails takes the others with it within two seconds.
// To be called by a program's main thread: ranks are killed when it ends.
absl::StatusOr<int> Launch(const LaunchOptions& options,
                           const Environment& env = CurrentEnvironment());

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_LAUNCHER_H_
