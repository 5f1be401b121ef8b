// What CPU ranks of this machine send each other their parts through, as a
// link for `halftone plan --timeline --link FILE`: on standard output.
//
//   link_benchmark 2            through memory, as ranks of one machine do
//   link_benchmark 4 sockets    over sockets
//
// An all-reduce of 16 bytes says what one begins with; how long 4 MiB take
// beside that, what is sent per second: 2 (N - 1) / N of the bytes. As what a
// step computes pushes its gradients out of the caches, each call sends another
// part of so much memory that none of it is still there. A sum counts as
// received when it has been read, as updates do, which find it in memory or
// other cores' caches; a profile of one rank finds it in its own.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "runtime/collective/connect.h"
#include "runtime/device/device.h"
#include "runtime/profile/link_times.h"

namespace halftone {
namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSmall = 16, kLarge = 4 << 20, kMemory = 64 << 20;
constexpr int kSmallCalls = 2001, kLargeCalls = 101;

struct Rank {
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Memory> memory;
};

// Medians, of the calls of rank 0.
struct Seconds {
  double small = 0, large = 0;
};

absl::StatusOr<double> TimeCalls(Rank& rank, int64_t bytes, int calls,
                                 Stream& stream) {
  std::vector<double> seconds;
  for (int i = 0; i < calls; ++i) {
    char* const part =
        static_cast<char*>(rank.memory->data()) + i * bytes % kMemory;
    const Clock::time_point begin = Clock::now();
    HT_RETURN_IF_ERROR(
        rank.communicator->AllReduce(part, bytes / SizeOf(DType::kF32),
                                     DType::kF32, ReduceOp::kSum, 1, stream));
    volatile uint64_t read;
    read = std::accumulate(reinterpret_cast<const uint64_t*>(part),
                           reinterpret_cast<const uint64_t*>(part + bytes),
                           uint64_t{0});
    (void)read;
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + calls / 2, seconds.end());
  return seconds[calls / 2];
}

absl::StatusOr<Seconds> RunRank(ConnectOptions options) {
  Rank rank;
  HT_ASSIGN_OR_RETURN(rank.communicator, ConnectRank(options));
  const std::unique_ptr<Device> device = MakeCpuDevice(0, 1);
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                      device->CreateStream("communicate"));
  rank.memory = rank.communicator->Allocate(kMemory);
  if (rank.memory == nullptr) {
    HT_ASSIGN_OR_RETURN(rank.memory, device->Allocate(kMemory));
  }
  std::memset(rank.memory->data(), 0, kMemory);
  Seconds seconds;
  HT_ASSIGN_OR_RETURN(seconds.small,
                      TimeCalls(rank, kSmall, kSmallCalls, *stream));
  HT_ASSIGN_OR_RETURN(seconds.large,
                      TimeCalls(rank, kLarge, kLargeCalls, *stream));
  return seconds;
}

absl::StatusOr<Link> MeasureLink(int ranks, bool sockets) {
  std::vector<absl::StatusOr<Seconds>> seconds(ranks, Seconds());
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    ConnectOptions options;
    options.shared_memory = !sockets;
    options.place.world_size = options.place.local_world_size = ranks;
    options.place.rank = options.place.local_rank = r;
    options.place.job_id = "link benchmark";
    threads.emplace_back(
        [&seconds, r, options] { seconds[r] = RunRank(options); });
  }
  for (std::thread& thread : threads) thread.join();
  HT_RETURN_IF_ERROR(seconds[0].status());
  Link link;
  link.name = absl::StrCat(sockets ? "loopback" : "memory", ".", ranks);
  link.start = seconds[0]->small;
  link.bandwidth = 2.0 * (ranks - 1) / ranks * static_cast<double>(kLarge) /
                   std::max(1e-9, seconds[0]->large - seconds[0]->small);
  return link;
}

int Main(int argc, char** argv) {
  int ranks = 0;
  const bool sockets = argc == 3 && std::string(argv[2]) == "sockets";
  if (argc < 2 || !absl::SimpleAtoi(argv[1], &ranks) || ranks < 2 ||
      (argc > 2 && !sockets)) {
    std::fprintf(stderr, "usage: link_benchmark RANKS [sockets]\n");
    return 2;
  }
  const absl::StatusOr<Link> link = MeasureLink(ranks, sockets);
  if (!link.ok()) {
    std::fprintf(stderr, "%s\n", std::string(link.status().message()).c_str());
    return 7;
  }
  std::fputs(PrintLink(*link).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

int main(int argc, char** argv) { return halftone::runtime::Main(argc, argv); }
