#include "runtime/launch/program_places.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/error.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/hmac.h"
#include "runtime/rendezvous/store_client.h"

namespace halftone {
namespace runtime {
namespace {

// As long as ranks wait for each other.
constexpr absl::Duration kMeet = absl::Seconds(60);
constexpr absl::Duration kLook = absl::Milliseconds(200);
// What torchrun says without --role and --rdzv-id, which are ignored here.
constexpr char kRole[] = "default", kRunId[] = "none";
// Below are ports of services.
constexpr int kFirstPort = 10240;
constexpr int kLastPort = 65535;
constexpr int kEnough = 1000;

struct PortRange {
  int first;
  int last;
};

// Ports that the system gives to nobody by itself, if there are enough.
PortRange QuietPorts() {
  int low = 32768;
  int high = 60999;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low >> high;
  if (low - kFirstPort >= kEnough) return {kFirstPort, low - 1};
  if (kLastPort - high >= kEnough) return {high + 1, kLastPort};
  return {kFirstPort, kLastPort};
}

bool CanBind(const sockaddr* address, socklen_t length) {
  Socket socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // A machine without IPv6 has nobody who listens there.
  if (!socket.open()) return address->sa_family == AF_INET6;
  const int on = 1;
  if (address->sa_family == AF_INET6) {
    setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  }
  return bind(socket.fd(), address, length) == 0 && listen(socket.fd(), 1) == 0;
}

// On every address, with a socket that asks for no favours.
bool IsFree(int port) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(port));
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  return CanBind(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4)) &&
         CanBind(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6));
}

constexpr char kPlaces[] = "places/", kRead[] = "read/";
std::string KeyOf(absl::string_view prefix, int node) {
  return absl::StrCat(prefix, node);
}

// What a node tells the others: where its ranks may listen, then the master.
std::string ToText(const std::vector<HostPort>& addresses) {
  return absl::StrJoin(addresses, " ",
                       [](std::string* out, const HostPort& address) {
                         absl::StrAppend(out, ToString(address));
                       });
}

absl::StatusOr<std::vector<HostPort>> PlacesFromText(const std::string& text,
                                                     size_t count) {
  std::vector<HostPort> addresses;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    HT_ASSIGN_OR_RETURN(HostPort address,
                        ParseHostPort("another node's address", word));
    addresses.push_back(address);
  }
  if (addresses.size() != count) {
    return CommunicationError("another node has ", addresses.size() - 1,
                              " ranks, this one ", count - 1,
                              ": give all nodes the same --ranks");
  }
  return addresses;
}

absl::StatusOr<std::unique_ptr<StoreClient>> ConnectToStore(
    const LaunchPlan& plan, const HostPort& store, int attempt,
    MonotonicTime deadline, const std::function<bool()>& stop) {
  StoreClientOptions options;
  options.address = store;
  options.rank = plan.rank(0);
  options.world_size = plan.world_size();
  options.token = plan.token;
  options.attempt = attempt;
  options.is_member = false;
  while (true) {
    const MonotonicTime limit =
        std::min(deadline, MonotonicTime::Now() + 5 * kLook);
    absl::StatusOr<std::unique_ptr<StoreClient>> client =
        StoreClient::Connect(options, limit);
    // What is said before the limit is a refusal, and would be said again.
    const bool final =
        limit == deadline || MonotonicTime::Now() + kLook < limit;
    if (client.ok() || final) return client;
    if (stop()) return absl::CancelledError("a signal");
  }
}

// Waits for what all nodes say under `prefix`, this one among them.
absl::StatusOr<std::vector<std::string>> AwaitNodes(
    StoreClient& client, absl::string_view prefix, int nodes,
    MonotonicTime deadline, const std::function<bool()>& stop) {
  std::vector<std::string> keys;
  for (int node = 0; node < nodes; ++node) keys.push_back(KeyOf(prefix, node));
  while (true) {
    HT_ASSIGN_OR_RETURN(WaitResult all, client.Wait(keys, kLook));
    if (all.missing.empty()) return all.values;
    if (stop()) return absl::CancelledError("a signal");
    if (MonotonicTime::Now() < deadline) continue;
    for (std::string& key : all.missing) {
      key = std::string(absl::StripPrefix(key, prefix));
    }
    return CommunicationError(all.missing.size() == 1 ? "node " : "nodes ",
                              absl::StrJoin(all.missing, ", "), " of ", nodes,
                              " did not arrive within ",
                              absl::FormatDuration(kMeet),
                              "; paste the line for it there");
  }
}

}  // namespace

absl::StatusOr<std::vector<int>> FindFreePorts(int count) {
  const PortRange range = QuietPorts();
  const int size = range.last - range.first + 1;
  uint32_t start = 0;
  std::memcpy(&start, RandomBytes(sizeof(start)).data(), sizeof(start));
  std::vector<int> ports;
  for (int i = 0; i < size && static_cast<int>(ports.size()) < count; ++i) {
    const int port =
        range.first + static_cast<int>((start + static_cast<uint32_t>(i)) %
                                       static_cast<uint32_t>(size));
    if (IsFree(port)) ports.push_back(port);
  }
  if (static_cast<int>(ports.size()) < count) {
    return CommunicationError("fewer than ", count, " free ports among ",
                              range.first, " to ", range.last);
  }
  return ports;
}

absl::StatusOr<ProgramPlaces> FindProgramPlaces(
    const LaunchPlan& plan, const HostPort& store, int attempt,
    const std::function<bool()>& stop) {
  HT_ASSIGN_OR_RETURN(const std::vector<int> ports,
                      FindFreePorts(plan.ranks + 1));
  std::vector<HostPort> mine;
  for (int port : ports) mine.push_back({plan.master.host, port});
  ProgramPlaces places;
  if (plan.nodes == 1) {
    places.master = mine.back();
    mine.pop_back();
    places.endpoints = mine;
    return places;
  }
  const MonotonicTime deadline = MonotonicTime::Now() + kMeet;
  HT_ASSIGN_OR_RETURN(std::unique_ptr<StoreClient> client,
                      ConnectToStore(plan, store, attempt, deadline, stop));
  if (plan.node_rank > 0) {
    for (HostPort& address : mine) address.host = client->local_host();
  }
  HT_RETURN_IF_ERROR(client->Set(KeyOf(kPlaces, plan.node_rank), ToText(mine)));
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      AwaitNodes(*client, kPlaces, plan.nodes, deadline, stop));
  // Node 0, whose store it is, goes on when nobody asks it any more: what it
  // runs may be done at once.
  HT_RETURN_IF_ERROR(client->Set(KeyOf(kRead, plan.node_rank), ""));
  if (plan.node_rank == 0) {
    HT_RETURN_IF_ERROR(
        AwaitNodes(*client, kRead, plan.nodes, deadline, stop).status());
  }
  for (int node = 0; node < plan.nodes; ++node) {
    HT_ASSIGN_OR_RETURN(std::vector<HostPort> theirs,
                        PlacesFromText(all[node], mine.size()));
    if (node == 0) places.master = theirs.back();
    places.endpoints.insert(places.endpoints.end(), theirs.begin(),
                            theirs.end() - 1);
  }
  return places;
}

void AddProgramVariables(const LaunchPlan& plan, const ProgramPlaces& places,
                         int local_rank, int attempt, int max_restarts,
                         Environment& env) {
  const int rank = plan.rank(local_rank);
  const auto set = [&env](const char* name, const auto& value) {
    env[name] = absl::StrCat(value);
  };
  set("RANK", rank);
  set("WORLD_SIZE", plan.world_size());
  set("LOCAL_RANK", local_rank);
  set("LOCAL_WORLD_SIZE", plan.ranks);
  set("GROUP_RANK", plan.node_rank);
  set("GROUP_WORLD_SIZE", plan.nodes);
  // All ranks have one role.
  set("ROLE_NAME", kRole);
  set("ROLE_RANK", rank);
  set("ROLE_WORLD_SIZE", plan.world_size());
  set("MASTER_ADDR", places.master.host);
  set("MASTER_PORT", places.master.port);
  set("TORCHELASTIC_RESTART_COUNT", attempt);
  set("TORCHELASTIC_MAX_RESTARTS", max_restarts);
  set("TORCHELASTIC_RUN_ID", kRunId);
  env.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  // No agent's store: rank 0's program listens itself.
  env.erase("TORCHELASTIC_USE_AGENT_STORE");

  set("PADDLE_TRAINER_ID", rank);
  set("PADDLE_TRAINERS_NUM", plan.world_size());
  set("PADDLE_CURRENT_ENDPOINT", ToString(places.endpoints[rank]));
  set("PADDLE_TRAINER_ENDPOINTS",
      absl::StrJoin(places.endpoints, ",",
                    [](std::string* out, const HostPort& address) {
                      absl::StrAppend(out, ToString(address));
                    }));
  set("PADDLE_MASTER", ToString(places.master));
  set("PADDLE_GLOBAL_RANK", rank);
  set("PADDLE_GLOBAL_SIZE", plan.world_size());
  set("PADDLE_LOCAL_RANK", local_rank);
  set("PADDLE_LOCAL_SIZE", plan.ranks);
  set("PADDLE_RANK_IN_NODE", local_rank);
  set("PADDLE_NNODES", plan.nodes);
  if (plan.gpus.empty()) {
    set("PADDLE_DISTRI_BACKEND", "gloo");
    env.erase("FLAGS_selected_gpus");
    return;
  }
  // Both choose among the GPUs that are visible.
  set("CUDA_VISIBLE_DEVICES", absl::StrJoin(plan.gpus, ","));
  set("FLAGS_selected_gpus", local_rank);
  set(kDeviceVariable, local_rank);
}

}  // namespace runtime
}  // namespace halftone
