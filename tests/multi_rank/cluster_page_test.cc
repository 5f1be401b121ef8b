// docs/cluster.md: its blocks, run as they stand on two nodes (network
// namespaces of this machine; for Slurm, a cluster made here) with the names of
// machines and ports replaced.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/child.h"
#include "tests/support/programs.h"
#include "tests/support/run_files.h"
#include "tests/support/same_training.h"
#include "tests/support/slurm_cluster.h"
#include "tests/support/two_nodes.h"

namespace halftone {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

// The page's block behind the fence "```<name>".
std::string Block(const std::string& name) {
  const std::string page = ReadAll("docs/cluster.md");
  const std::string fence = absl::StrCat("```", name, "\n");
  const size_t start = page.find(fence);
  EXPECT_NE(start, std::string::npos) << name;
  if (start == std::string::npos) return "";
  const size_t first = start + fence.size();
  return page.substr(first, page.find("```", first) - first);
}

// A folder with what the page's reader has: the model, the data, the binary in
// PATH. The short training that is compared comes from the model.
class Page : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = NewPath("reader");
    mkdir(folder_.c_str(), 0700);
    mkdir((folder_ + "/bin").c_str(), 0700);
    char data[PATH_MAX];
    ASSERT_NE(realpath("models/digits", data), nullptr);
    ASSERT_EQ(symlink(data, (folder_ + "/digits").c_str()), 0);
    ASSERT_EQ(symlink(Halftone().c_str(), (folder_ + "/bin/halftone").c_str()),
              0);
    const Result compiled =
        RunProgram({Halftone(), "compile", CompiledModel(), "--epochs", "1",
                    "-o", folder_ + "/mnist.htc"});
    ASSERT_EQ(compiled.exit_code(), 0) << compiled.err;
    env_ = OwnVariables();
    env_["PATH"] = absl::StrCat(folder_, "/bin:", env_["PATH"],
                                ":/usr/sbin:/usr/bin:/sbin:/bin");
    env_["OMP_NUM_THREADS"] = "1";
  }
  // Writes an executable file of the reader's.
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path) << text;
    chmod(path.c_str(), 0700);
    return path;
  }
  // Four ranks have trained, to the same loss as ours. (The page's runs show
  // every tenth step only.)
  void ExpectTrained(const Result& result, const std::string& out) {
    ASSERT_EQ(result.exit_code(), 0) << result.out << result.err;
    const json summary = json::parse(ReadAll(out + "/summary.json"));
    EXPECT_EQ(summary["ranks"], 4);
    EXPECT_EQ(summary["exit"], 0);
    const std::vector<json> events = Metrics(out);
    ASSERT_FALSE(events.empty());
    std::map<int64_t, json> scales;
    for (const json& event : MetricsOfOurs(4)) {
      if (event["event"] == "step") scales[event["step"]] = event["grad_norm"];
    }
    int compared = 0;
    for (const json& event : events) {
      if (event["event"] != "step") continue;
      EXPECT_EQ(event["grad_norm"], scales[event["step"]]) << event;
      ++compared;
    }
    EXPECT_GE(compared, 2);
  }

  std::string folder_;
  Variables env_;
};

class NodesPage : public Page {
 protected:
  void SetUp() override {
    Page::SetUp();
    const std::string trouble = nodes_.Make();
    if (!trouble.empty()) {
      GTEST_SKIP() << "no network namespaces here: " << trouble;
    }
  }
  std::string Replaced(const std::string& block, const std::string& name,
                       const std::string& by) {
    EXPECT_THAT(block, HasSubstr(name)) << "the page has changed";
    return absl::StrReplaceAll(block, {{name, by}});
  }
  // In the first node, in the reader's folder.
  Result RunThere(const std::string& script) {
    return Wait(Start("page",
                      nodes_.On(0, {"/bin/sh", "-c",
                                    absl::StrCat("cd ", folder_, " && exec ",
                                                 "/bin/sh ./", script)}),
                      env_));
  }
  // A remote shell that is the other namespace's: "agent HOST command...".
  std::string Agent() {
    std::string text = "#!/bin/sh\nhost=$1; shift\ncase $host in\n";
    for (int node = 0; node < 2; ++node) {
      absl::StrAppend(&text, nodes_.AddressOf(node), ") exec ",
                      absl::StrJoin(nodes_.On(node, {"/bin/sh"}), " "),
                      " -c \"$*\" ;;\n");
    }
    return Write("agent", text + "esac\nexit 1\n");
  }

  TwoNodes nodes_;
};

// With a real sshd in either namespace, and its client.
TEST_F(NodesPage, Ssh) {
  const std::string sshd = FindProgram("HALFTONE_SSHD", "sshd");
  const std::string keygen = FindProgram("HALFTONE_SSH_KEYGEN", "ssh-keygen");
  const std::string ssh = FindProgram("HALFTONE_SSH", "ssh");
  if (sshd.empty() || keygen.empty() || ssh.empty()) {
    GTEST_SKIP() << "no sshd, ssh-keygen or ssh";
  }
  const std::string key = folder_ + "/key";
  ASSERT_EQ(RunProgram({keygen, "-q", "-t", "ed25519", "-N", "", "-f", key})
                .exit_code(),
            0);
  Write("sshd.conf",
        absl::StrCat("HostKey ", key, "\nAuthorizedKeysFile ", key,
                     ".pub\nStrictModes no\nUsePAM no\nPidFile none\n",
                     "PermitRootLogin yes\nSetEnv PATH=", env_["PATH"],
                     " OMP_NUM_THREADS=1\n"));
  // Debian's sshd wants it; where it is not ours to make, it may be there.
  mkdir("/run/sshd", 0755);
  std::vector<Child> daemons;
  for (int node = 0; node < 2; ++node) {
    daemons.push_back(
        Start(absl::StrCat("sshd-", node),
              nodes_.On(node, {sshd, "-D", "-e", "-f", folder_ + "/sshd.conf",
                               "-p", "2022"}),
              env_));
  }
  std::string config = absl::StrCat(
      "Host *\nPort 2022\nIdentityFile ", key, "\nStrictHostKeyChecking no\n",
      "UserKnownHostsFile /dev/null\nLogLevel ERROR\nConnectionAttempts 20\n");
  for (int node = 0; node < 2; ++node) {
    absl::StrAppend(&config, "Host node", node, "\nHostName ",
                    nodes_.AddressOf(node), "\n");
  }
  Write("ssh.conf", config);
  Write("bin/ssh", absl::StrCat("#!/bin/sh\nexec ", ssh, " -F ", folder_,
                                "/ssh.conf \"$@\"\n"));
  Write("block.sh", Replaced(Block("sh ssh"), "node0:29500",
                             nodes_.AddressOf(0) + ":29500"));
  const Result tried = Wait(Start(
      "ssh", nodes_.On(0, {folder_ + "/bin/ssh", "node1", "true"}), env_));
  if (tried.exit_code() == 0) {
    ExpectTrained(RunThere("block.sh"), folder_ + "/runs/mnist");
  }
  for (const Child& daemon : daemons) {
    Signal(daemon.pid, SIGTERM);
    Wait(daemon);
  }
  if (tried.exit_code() != 0) {
    GTEST_SKIP() << "sshd does not run here: " << tried.err
                 << ReadAll(daemons[1].err);
  }
}

TEST_F(NodesPage, Mpirun) {
  const std::string mpirun = FindProgram("HALFTONE_MPIRUN", "mpirun");
  if (mpirun.empty()) GTEST_SKIP() << "no mpirun in PATH or in HALFTONE_MPIRUN";
  Write("hosts", absl::StrCat(nodes_.AddressOf(0), " slots=2\n",
                              nodes_.AddressOf(1), " slots=2\n"));
  Write("block.sh", Replaced(Block("sh mpirun"), "MASTER_ADDR=node0",
                             "MASTER_ADDR=" + nodes_.AddressOf(0)));
  env_["OMPI_MCA_plm_rsh_agent"] = Agent();
  env_["OMPI_ALLOW_RUN_AS_ROOT"] = env_["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  ExpectTrained(RunThere("block.sh"), folder_ + "/runs/mnist");
}

// A block of YAML as JSON; null where nothing here reads YAML.
json FromYaml(const std::string& block) {
  const std::string python = FindPython("HALFTONE_YAML_PYTHON", "yaml");
  if (python.empty()) return nullptr;
  const std::string file = NewPath("block.yaml");
  std::ofstream(file) << block;
  const Result read =
      RunProgram({python, "-c",
                  "import json, sys, yaml\n"
                  "print(json.dumps(yaml.safe_load(open(sys.argv[1]))))",
                  file});
  EXPECT_EQ(read.exit_code(), 0) << read.err;
  return read.exit_code() == 0 ? json::parse(read.out) : json();
}

// What Kubernetes refuses a pod without, or with.
void ExpectPod(const json& replica) {
  ASSERT_TRUE(replica.contains("template")) << replica;
  const json& spec = replica["template"]["spec"];
  std::vector<std::string> volumes;
  for (const json& volume : spec.value("volumes", json::array())) {
    volumes.push_back(volume["name"]);
    EXPECT_TRUE(volume["persistentVolumeClaim"]["claimName"].is_string());
  }
  ASSERT_EQ(spec["containers"].size(), 1u);
  const json& container = spec["containers"][0];
  EXPECT_TRUE(container["name"].is_string() && container["image"].is_string());
  for (const json& word : container.value("command", json::array())) {
    EXPECT_TRUE(word.is_string()) << word;
  }
  for (const json& mount : container.value("volumeMounts", json::array())) {
    EXPECT_THAT(volumes, ::testing::Contains(mount["name"]));
    EXPECT_TRUE(mount["mountPath"].is_string());
  }
  for (const json& from : container.value("envFrom", json::array())) {
    EXPECT_THAT(Block("sh secret"),
                HasSubstr(absl::StrCat(
                    "secret generic ",
                    from["secretRef"]["name"].get<std::string>(), " ")));
  }
}

Words CommandOf(const json& replica) {
  return replica["template"]["spec"]["containers"][0]["command"];
}

// Its pods' command under the operator's variables.
TEST_F(NodesPage, PyTorchJob) {
  const json job = FromYaml(Block("yaml pytorchjob"));
  if (job.is_null()) GTEST_SKIP() << "no Python here that reads YAML";
  EXPECT_EQ(job["apiVersion"], "kubeflow.org/v1");
  EXPECT_EQ(job["kind"], "PyTorchJob");
  EXPECT_TRUE(job["metadata"]["name"].is_string());
  const json& replicas = job["spec"]["pytorchReplicaSpecs"];
  std::vector<Child> pods;
  for (const std::string role : {"Master", "Worker"}) {
    const json& replica = replicas[role];
    ExpectPod(replica);
    EXPECT_EQ(replica["replicas"], 1);
    // The operator looks for the container of this name.
    EXPECT_EQ(replica["template"]["spec"]["containers"][0]["name"], "pytorch");
    const int node = static_cast<int>(pods.size());
    Variables env = env_;
    env["HALFTONE_TOKEN"] = "of the test";
    env["MASTER_ADDR"] = nodes_.AddressOf(0);
    env["MASTER_PORT"] = "23456";
    env["WORLD_SIZE"] = "2";
    env["RANK"] = absl::StrCat(node);
    pods.push_back(Start(
        "pod-" + role,
        nodes_.On(node,
                  Join({"/bin/sh", "-c",
                        absl::StrCat("cd ", folder_, " && exec \"$@\""), "sh"},
                       CommandOf(replica))),
        env));
  }
  const Result master = Wait(pods[0]), worker = Wait(pods[1]);
  ExpectTrained(master, folder_ + "/runs/mnist");
  EXPECT_EQ(worker.exit_code(), 0) << worker.err;
}

TEST_F(NodesPage, MpiJob) {
  const json job = FromYaml(Block("yaml mpijob"));
  if (job.is_null()) GTEST_SKIP() << "no Python here that reads YAML";
  EXPECT_EQ(job["apiVersion"], "kubeflow.org/v2beta1");
  EXPECT_EQ(job["kind"], "MPIJob");
  const json& replicas = job["spec"]["mpiReplicaSpecs"];
  ExpectPod(replicas["Launcher"]);
  ExpectPod(replicas["Worker"]);
  EXPECT_EQ(job["spec"]["slotsPerWorker"], 2);
  EXPECT_EQ(replicas["Worker"]["replicas"], 2);
  const std::string mpirun = FindProgram("HALFTONE_MPIRUN", "mpirun");
  if (mpirun.empty()) GTEST_SKIP() << "no mpirun in PATH or in HALFTONE_MPIRUN";
  const Words command = CommandOf(replicas["Launcher"]);
  ASSERT_EQ(command.size(), 3u);
  // As the operator does: a file of hosts, and the way to them.
  const std::string hosts =
      Write("hostfile", absl::StrCat(nodes_.AddressOf(0), " slots=2\n",
                                     nodes_.AddressOf(1), " slots=2\n"));
  std::string script = Replaced(command[2], "/etc/mpi/hostfile", hosts);
  Write("block.sh", Replaced(script, "/work", folder_));
  env_["HALFTONE_TOKEN"] = "of the test";
  env_["OMPI_MCA_orte_default_hostfile"] = hosts;
  env_["OMPI_MCA_plm_rsh_agent"] = Agent();
  env_["OMPI_ALLOW_RUN_AS_ROOT"] = env_["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  ExpectTrained(RunThere("block.sh"), folder_ + "/runs/mnist");
}

TEST_F(Page, Slurm) {
  SlurmCluster cluster;
  const std::string trouble = cluster.Start();
  if (!trouble.empty()) GTEST_SKIP() << "no Slurm here: " << trouble;
  const std::string job = Write("job.sh", Block("sh slurm"));
  setenv("PATH", env_["PATH"].c_str(), 1);
  const Result result = cluster.Run({"sbatch", "--wait", "--chdir", folder_,
                                     "--output", folder_ + "/job.out", job});
  ExpectTrained(
      {result.status, result.out, result.err + ReadAll(folder_ + "/job.out")},
      folder_ + "/runs/mnist");
}

// A block without a test would not be held to anything.
TEST_F(Page, HasNoOtherBlocks) {
  int fences = 0;
  for (const absl::string_view line :
       absl::StrSplit(ReadAll("docs/cluster.md"), '\n')) {
    if (!absl::StartsWith(line, "```") || line == "```") continue;
    ++fences;
    EXPECT_THAT((std::vector<std::string>{
                    "```sh ssh", "```sh slurm", "```sh mpirun", "```sh secret",
                    "```yaml pytorchjob", "```yaml mpijob"}),
                ::testing::Contains(std::string(line)));
  }
  EXPECT_EQ(fences, 6);
}

}  // namespace
}  // namespace halftone
