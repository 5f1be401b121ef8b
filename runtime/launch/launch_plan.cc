#include "runtime/launch/launch_plan.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "runtime/log/words.h"
#include "runtime/rendezvous/token.h"

namespace halftone {
namespace runtime {
namespace {

// torchrun's own default.
constexpr int kDefaultPort = 29500;

std::string ValueOf(const Environment& env, const std::string& name) {
  auto it = env.find(name);
  return it == env.end() ? "" : it->second;
}

void Explain(LaunchPlan& plan, absl::string_view what, absl::string_view value,
             absl::string_view from) {
  plan.explanation.push_back(
      absl::StrFormat("%-11s %-22s %s", what, value, from));
}

absl::Status TakeIps(const LaunchOptions& options,
                     const std::vector<std::string>& addresses,
                     LaunchPlan& plan) {
  plan.nodes = static_cast<int>(options.ips.size());
  auto mine = std::find_if(
      options.ips.begin(), options.ips.end(), [&](const std::string& ip) {
        return std::find(addresses.begin(), addresses.end(), ip) !=
               addresses.end();
      });
  if (mine == options.ips.end()) {
    return UsageError("--ips: none of ", absl::StrJoin(options.ips, ","),
                      " is an address of this machine (",
                      absl::StrJoin(addresses, ", "), ")");
  }
  plan.node_rank = static_cast<int>(mine - options.ips.begin());
  if (plan.nodes > 1) plan.master = {options.ips[0], kDefaultPort};
  Explain(plan, "node", absl::StrCat(plan.node_rank, " of ", plan.nodes),
          absl::StrCat("--ips, where ", *mine, " is this machine"));
  return absl::OkStatus();
}

absl::Status TakeNodes(const LaunchOptions& options, const Environment& env,
                       const std::vector<std::string>& addresses,
                       LaunchPlan& plan, int& ranks_per_node) {
  if (!options.ips.empty()) return TakeIps(options, addresses, plan);
  if (options.nnodes > 0) {
    plan.nodes = options.nnodes;
    plan.node_rank = std::max(options.node_rank, 0);
    Explain(plan, "node", absl::StrCat(plan.node_rank, " of ", plan.nodes),
            "--nnodes, --node-rank");
  } else {
    HT_ASSIGN_OR_RETURN(NodePlacement node, FindNode(env));
    plan.nodes = node.nodes;
    plan.node_rank =
        options.node_rank >= 0 ? options.node_rank : node.node_rank;
    if (plan.nodes > 1) plan.master = node.master;
    ranks_per_node = node.ranks_per_node;
    plan.explanation.insert(plan.explanation.end(), node.explanation.begin(),
                            node.explanation.end());
  }
  if (plan.node_rank >= plan.nodes) {
    return UsageError("--node-rank ", plan.node_rank, " is not below --nnodes ",
                      plan.nodes);
  }
  if (options.nnodes > 1 && options.node_rank < 0) {
    return UsageError("--nnodes ", options.nnodes,
                      " needs --node-rank: 0 on the machine of --master, 1 and "
                      "so on elsewhere");
  }
  return absl::OkStatus();
}

// GPUs in the order of local ranks, as CUDA_VISIBLE_DEVICES names them.
absl::StatusOr<std::vector<std::string>> FindGpus(const LaunchOptions& options,
                                                  const Environment& env) {
  const std::string list = ValueOf(env, "CUDA_VISIBLE_DEVICES");
  std::vector<std::string> visible =
      absl::StrSplit(list, ',', absl::SkipEmpty());
  std::vector<std::string> chosen;
  for (int gpu : options.gpus) {
    if (std::count(options.gpus.begin(), options.gpus.end(), gpu) > 1) {
      return UsageError("--gpus ", absl::StrJoin(options.gpus, ","), ": ", gpu,
                        " comes twice, but NCCL connects no processes on one "
                        "GPU; ranks that share it are threads: halftone run "
                        "--gpus ",
                        absl::StrJoin(options.gpus, ","));
    }
    chosen.push_back(absl::StrCat(gpu));
    const bool member = std::find(visible.begin(), visible.end(),
                                  chosen.back()) != visible.end();
    if (!list.empty() && !member) {
      return UsageError("--gpus ", absl::StrJoin(options.gpus, ","), ": ", gpu,
                        " is not in CUDA_VISIBLE_DEVICES=", list,
                        " (--gpus takes physical ids; --ranks gpu takes what "
                        "is visible)");
    }
  }
  if (!chosen.empty()) return chosen;
  for (int i = 0; list.empty() && i < options.visible_gpus; ++i) {
    visible.push_back(absl::StrCat(i));
  }
  // The driver may show fewer than the variable names.
  visible.resize(
      std::min<size_t>(visible.size(), std::max(options.visible_gpus, 0)));
  return visible;
}

absl::Status TakeRanks(const LaunchOptions& options, const Environment& env,
                       int ranks_per_node, int cores, LaunchPlan& plan) {
  HT_ASSIGN_OR_RETURN(std::vector<std::string> gpus, FindGpus(options, env));
  const int gpu_count = static_cast<int>(gpus.size());
  std::string from = absl::StrCat("--ranks ", options.ranks);
  if (options.ranks.empty()) {
    plan.ranks =
        !options.gpus.empty() ? gpu_count : std::max(ranks_per_node, 1);
    from = !options.gpus.empty() ? "one per entry of --gpus"
           : ranks_per_node > 0  ? "the operator's variables"
                                 : "no --ranks";
  } else if (options.ranks == "cpu") {
    plan.ranks = cores;
    gpus.clear();
  } else if (options.ranks == "gpu" || options.ranks == "auto") {
    if (options.ranks == "gpu" && gpu_count == 0) {
      return DeviceError("--ranks gpu: there is no GPU here");
    }
    plan.ranks = gpu_count > 0 ? gpu_count : cores;
  } else if (!absl::SimpleAtoi(options.ranks, &plan.ranks) || plan.ranks < 1 ||
             plan.ranks > kMostRanks) {
    return UsageError("--ranks: expected a number of 1 to ", kMostRanks,
                      ", auto, gpu or cpu, found '", options.ranks, "'");
  }
  if (plan.ranks > kMostRanks / plan.nodes) {
    return UsageError(plan.nodes, " nodes with ", Count(plan.ranks, "rank"),
                      " each: a run has up to ", kMostRanks, " ranks");
  }
  if (!options.gpus.empty() && plan.ranks != gpu_count) {
    return UsageError("--ranks ", plan.ranks, " but ", gpu_count,
                      " ids in --gpus: one rank runs on each");
  }
  // A plain number of ranks runs on the CPU unless GPUs were named.
  const bool on_gpus = !options.gpus.empty() || options.ranks == "gpu" ||
                       options.ranks == "auto";
  if (on_gpus) plan.gpus = gpus;
  Explain(plan, "ranks", absl::StrCat(plan.ranks, " here"), from);
  Explain(plan, "world", Count(plan.world_size(), "rank"),
          absl::StrCat(plan.nodes, " x ", plan.ranks, "; here ", plan.rank(0),
                       " to ", plan.rank(plan.ranks - 1)));
  Explain(plan, "devices",
          plan.gpus.empty()
              ? "cpu"
              : absl::StrCat("gpu ", absl::StrJoin(plan.gpus, ",")),
          plan.gpus.empty() ? Count(cores, "usable core") : "by local rank");
  return absl::OkStatus();
}

absl::Status TakeMaster(const LaunchOptions& options, LaunchPlan& plan) {
  if (!options.master.empty()) {
    std::string text = options.master;
    if (text[0] == ':') text = absl::StrCat(plan.master.host, text);
    if (text[0] == ':' && plan.nodes > 1) {
      return UsageError("--master ", options.master, ": which of ", plan.nodes,
                        " nodes? expected HOST:PORT");
    }
    if (text[0] == ':') text = absl::StrCat("127.0.0.1", text);
    // A bracketed IPv6 address ends with the bracket.
    const bool has_port = absl::StrContains(text, ':') && text.back() != ']';
    if (!has_port) absl::StrAppend(&text, ":", kDefaultPort);
    // torchrun's spelling of "any port".
    const bool any_port = absl::EndsWith(text, ":0");
    if (any_port && plan.nodes > 1) {
      return UsageError("--master ", options.master, ": ", plan.nodes,
                        " nodes meet at a port that all know: give one that "
                        "is free on node 0");
    }
    if (any_port) text.back() = '1';  // what follows is not of the port
    HT_ASSIGN_OR_RETURN(plan.master, ParseHostPort("--master", text));
    if (any_port) plan.master.port = 0;
    Explain(plan, "master", any_port ? plan.master.host : ToString(plan.master),
            any_port ? "--master, a random port" : "--master");
    return absl::OkStatus();
  }
  if (plan.nodes > 1 && plan.master.host.empty()) {
    return UsageError("--nnodes ", plan.nodes,
                      " needs --master HOST:PORT: an address of node 0 that "
                      "the others reach, and a free port there");
  }
  if (plan.nodes > 1) return absl::OkStatus();  // explained where it was found
  plan.master = {"127.0.0.1", 0};
  Explain(plan, "master", "127.0.0.1", "one node: loopback, a random port");
  return absl::OkStatus();
}

absl::Status TakeToken(const LaunchOptions& options, const Environment& env,
                       LaunchPlan& plan) {
  std::string from = "environment";
  if (!options.token_file.empty()) {
    HT_ASSIGN_OR_RETURN(plan.token, ReadTokenFile(options.token_file));
    plan.token_file = options.token_file;
    from = options.token_file == "-" ? "standard input" : options.token_file;
  } else {
    HT_ASSIGN_OR_RETURN(plan.token, FindToken(env));
  }
  if (plan.token.empty() && plan.node_rank > 0) {
    return UsageError("node ", plan.node_rank,
                      " needs the run's token: --token-file FILE with a copy "
                      "(mode 0600) of the file that node 0 named, --token-file "
                      "- to read it from standard input, or HALFTONE_TOKEN in "
                      "the environment of all nodes");
  }
  if (plan.token.empty()) {
    plan.token = NewToken();
    plan.token_is_new = true;
    from = "made for this run";
  }
  Explain(plan, "token", "(not shown)", from);
  return absl::OkStatus();
}

absl::Status TakeThreads(const Environment& env, int cores, LaunchPlan& plan) {
  const std::string given = ValueOf(env, "OMP_NUM_THREADS");
  plan.omp_threads = plan.gpus.empty() ? std::max(1, cores / plan.ranks) : 1;
  std::string from =
      plan.gpus.empty()
          ? absl::StrCat(Count(cores, "core"), " / ", Count(plan.ranks, "rank"))
          : "on a GPU";
  if (!given.empty()) {
    // OpenMP takes a list for nested regions; the first counts here.
    const std::vector<std::string> levels = absl::StrSplit(given, ',');
    if (!absl::SimpleAtoi(levels[0], &plan.omp_threads) ||
        plan.omp_threads < 1) {
      return UsageError("environment: OMP_NUM_THREADS='", given,
                        "' is not a number of threads");
    }
    from = "OMP_NUM_THREADS";
  }
  Explain(plan, "threads", absl::StrCat(plan.omp_threads, " per rank"), from);
  return absl::OkStatus();
}

// The value of `--out X` or `--out=X`, for flag "--out"; the last one counts.
std::string ValueOfFlag(const std::vector<std::string>& command,
                        absl::string_view flag) {
  std::string value;
  for (size_t i = 0; i < command.size(); ++i) {
    absl::string_view word = command[i];
    if (word == flag && i + 1 < command.size()) value = command[i + 1];
    if (absl::ConsumePrefix(&word, flag) && absl::ConsumePrefix(&word, "=")) {
      value = std::string(word);
    }
  }
  return value;
}

// What the command does with a wrong value is its own business.
void TakeReaders(const LaunchOptions& options, LaunchPlan& plan) {
  plan.readers = options.readers;
  if (plan.readers == 0) return;
  const std::string given = ValueOfFlag(options.command, "--workers");
  if (!given.empty() && !absl::SimpleAtoi(given, &plan.readers)) {
    plan.readers = 0;
  }
}

void TakeLogs(const LaunchOptions& options, const Environment& env,
              LaunchPlan& plan) {
  const std::string& out = plan.out;
  std::string from = "--log-dir";
  plan.log_dir = options.log_dir;
  plan.log_dir_is_named = !options.log_dir.empty();
  if (plan.log_dir.empty() && !out.empty()) {
    plan.log_dir = absl::StrCat(out, "/logs");
    from = "--out";
  } else if (plan.log_dir.empty()) {
    const std::string tmp = ValueOf(env, "TMPDIR");
    plan.log_dir =
        absl::StrCat(tmp.empty() ? "/tmp" : tmp, "/halftone-logs-XXXXXX");
    plan.log_dir_is_pattern = true;
    from = "neither --log-dir nor --out";
  }
  plan.failure_file = FailureFileIn(out.empty() ? plan.log_dir : out);
  Explain(plan, "logs", plan.log_dir, from);
}

std::string ShellQuote(const std::string& word) {
  const bool plain =
      !word.empty() &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) {
        return std::isalnum(c) || absl::StrContains("_-./=:,+@%", char(c));
      });
  if (plain) return word;
  if (Printable(word) != word) {
    // As a shell reads it back; nothing that a terminal would obey.
    const std::string text = PrintableName(
        absl::StrReplaceAll(word, {{"\\", "\\\\"}, {"'", "\\'"}}));
    return absl::StrCat("$'", text, "'");
  }
  return absl::StrCat("'", absl::StrJoin(absl::StrSplit(word, '\''), "'\\''"),
                      "'");
}

}  // namespace

absl::StatusOr<LaunchPlan> MakeLaunchPlan(
    const LaunchOptions& options, const Environment& env, int cores,
    const std::vector<std::string>& addresses) {
  LaunchPlan plan;
  int ranks_per_node = 0;
  HT_RETURN_IF_ERROR(TakeNodes(options, env, addresses, plan, ranks_per_node));
  HT_RETURN_IF_ERROR(TakeRanks(options, env, ranks_per_node, cores, plan));
  HT_RETURN_IF_ERROR(TakeMaster(options, plan));
  HT_RETURN_IF_ERROR(TakeToken(options, env, plan));
  HT_RETURN_IF_ERROR(TakeThreads(env, cores, plan));
  for (int rank : options.tee) {
    if (rank < plan.rank(0) || rank >= plan.rank(0) + plan.ranks) {
      return UsageError("--tee ", rank, ": ranks ", plan.rank(0), " to ",
                        plan.rank(plan.ranks - 1), " run here");
    }
  }
  // What another program's --out means is its own business.
  // Of other verbs it is no directory.
  if (options.own_verb && options.command.size() > 1 &&
      options.command[1] == "run") {
    plan.out = ValueOfFlag(options.command, "--out");
  }
  TakeReaders(options, plan);
  TakeLogs(options, env, plan);
  return plan;
}

std::string FailureFileIn(const std::string& directory) {
  return absl::StrCat(directory, "/failure.json");
}

std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    char text[INET6_ADDRSTRLEN];
    const int family = at->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) {
      address = &reinterpret_cast<sockaddr_in*>(at->ifa_addr)->sin_addr;
    } else if (family == AF_INET6) {
      address = &reinterpret_cast<sockaddr_in6*>(at->ifa_addr)->sin6_addr;
    }
    if (address != nullptr &&
        inet_ntop(family, address, text, sizeof(text)) != nullptr) {
      addresses.push_back(text);
    }
  }
  freeifaddrs(list);
  return addresses;
}

std::string CommandForNode(const LaunchOptions& options, const LaunchPlan& plan,
                           int node_rank) {
  std::string text =
      absl::StrCat(ShellQuote(options.self), " launch --nnodes ", plan.nodes,
                   " --node-rank ", node_rank, " --master ",
                   ToString(plan.master), " --ranks ", plan.ranks);
  if (!options.gpus.empty()) {
    absl::StrAppend(&text, " --gpus ", absl::StrJoin(options.gpus, ","));
  }
  if (options.max_restarts > 0) {
    absl::StrAppend(&text, " --max-restarts ", options.max_restarts);
  }
  if (!plan.token_file.empty()) {
    absl::StrAppend(&text, " --token-file ", ShellQuote(plan.token_file));
  }
  // Our own binary may lie elsewhere there.
  if (!options.own_verb) absl::StrAppend(&text, " --");
  for (size_t i = options.own_verb ? 1 : 0; i < options.command.size(); ++i) {
    absl::StrAppend(&text, " ", ShellQuote(options.command[i]));
  }
  return text;
}

Environment RankEnvironment(const LaunchPlan& plan, const Environment& env,
                            int local_rank, int attempt,
                            const HostPort& master) {
  Environment rank = env;
  rank[kRankVariable] = absl::StrCat(plan.rank(local_rank));
  rank[kWorldSizeVariable] = absl::StrCat(plan.world_size());
  rank[kLocalRankVariable] = absl::StrCat(local_rank);
  rank[kLocalWorldSizeVariable] = absl::StrCat(plan.ranks);
  rank[kMasterVariable] = ToString(master);
  rank[kMasterServedVariable] = "1";
  rank[kAttemptVariable] = absl::StrCat(attempt);
  rank[kTokenVariable] = plan.token;
  rank.erase(kTokenFileVariable);
  rank["OMP_NUM_THREADS"] = absl::StrCat(plan.omp_threads);
  if (!plan.gpus.empty()) {
    rank["CUDA_VISIBLE_DEVICES"] = plan.gpus[local_rank];
    // A physical id, as nvidia-smi has it; unless the user counts otherwise.
    rank.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    rank[kDeviceVariable] = "0";
  }
  return rank;
}

}  // namespace runtime
}  // namespace halftone
