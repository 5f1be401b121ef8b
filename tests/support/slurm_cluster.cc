#include "tests/support/slurm_cluster.h"

#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/rendezvous/socket.h"
#include "tests/support/programs.h"

namespace halftone {
namespace {

// Nodes are named by addresses, which all find: the loopback has many.
constexpr char kConfig[] = R"(ClusterName=test
SlurmctldHost=HOST(127.0.0.1)
SlurmctldPort=PORT0
SlurmUser=USER
SlurmdUser=USER
AuthType=auth/none
CredType=cred/none
MpiDefault=none
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
StateSaveLocation=DIR
SlurmdSpoolDir=DIR/%n
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/%n.pid
NodeName=127.0.0.1 NodeHostname=HOST Port=PORT1 CPUs=4
NodeName=127.0.0.2 NodeHostname=HOST Port=PORT2 CPUs=4
PartitionName=all Nodes=127.0.0.[1-2] Default=YES State=UP
)";

std::string FreePort() {
  return absl::StrCat(runtime::Listen("127.0.0.1", 0)->local().port);
}

// Where a user may not become another, they end at once.
bool AllLive(const std::vector<Child>& children) {
  for (const Child& child : children) {
    siginfo_t info = {};
    waitid(P_PID, child.pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid != 0) return false;
  }
  return true;
}

}  // namespace

SlurmCluster::~SlurmCluster() {
  for (auto daemon = daemons_.rbegin(); daemon != daemons_.rend(); ++daemon) {
    Signal(daemon->pid, SIGTERM);
    Wait(*daemon);
  }
  if (!folder_.empty()) RunProgram({"/bin/rm", "-rf", folder_});
}

std::map<std::string, std::string> SlurmCluster::Variables() const {
  std::map<std::string, std::string> variables = OwnVariables();
  variables["SLURM_CONF"] = config_;
  return variables;
}

std::string SlurmCluster::Start() {
  const std::string controller = FindProgram("HALFTONE_SLURMCTLD", "slurmctld");
  const std::string node = FindProgram("HALFTONE_SLURMD", "slurmd");
  if (controller.empty() || node.empty()) return "no slurmctld or slurmd";
  const passwd* user = getpwuid(geteuid());
  if (user == nullptr) return "this user has no name";
  // Sockets lie there, whose paths are short.
  char folder[] = "/tmp/halftone-slurm-XXXXXX";
  if (mkdtemp(folder) == nullptr) return "no room in /tmp";
  folder_ = folder;
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, HOST_NAME_MAX);
  config_ = absl::StrCat(folder_, "/slurm.conf");
  std::ofstream(config_) << absl::StrReplaceAll(
      kConfig, {{"HOST(", absl::StrCat(std::string(host), "(")},
                {"=HOST ", absl::StrCat("=", std::string(host), " ")},
                {"PORT0", FreePort()},
                {"PORT1", FreePort()},
                {"PORT2", FreePort()},
                {"USER", user->pw_name},
                {"DIR", folder_}});
  const auto start = [&](const std::string& name,
                         const std::vector<std::string>& words) {
    daemons_.push_back(halftone::Start(name, words, Variables()));
  };
  start("slurmctld", {controller, "-D", "-i"});
  start("slurmd-1", {node, "-D", "-N", "127.0.0.1"});
  start("slurmd-2", {node, "-D", "-N", "127.0.0.2"});
  usleep(500000);
  Result tried;
  for (int i = 0; i < 30 && AllLive(daemons_); ++i) {
    tried = Run({"srun", "--immediate=5", "-N", "2", "-n", "2", "true"});
    if (tried.exit_code() == 0) return "";
    usleep(500000);
  }
  return absl::StrCat(tried.err, ReadAll(daemons_[0].err),
                      ReadAll(daemons_[1].err));
}

Result SlurmCluster::Run(const std::vector<std::string>& words) const {
  std::vector<std::string> command = words;
  command[0] = FindProgram(
      absl::StrCat("HALFTONE_", absl::AsciiStrToUpper(words[0])).c_str(),
      words[0]);
  if (command[0].empty()) command = {"/bin/false"};
  static int runs = 0;
  return Wait(
      halftone::Start(absl::StrCat("slurm-", runs++), command, Variables()));
}

}  // namespace halftone
