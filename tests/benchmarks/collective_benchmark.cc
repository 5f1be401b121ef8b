// All-reduce between threads, through shared memory and over sockets, per byte
// and per call.
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "graph/base/dtype.h"
#include "runtime/collective/connect.h"
#include "runtime/collective/reduce.h"

namespace halftone {
namespace runtime {
namespace {

enum By { kThreads, kInPlace, kSharedMemory, kSockets };

std::vector<std::unique_ptr<Communicator>> ConnectThreads(int world_size,
                                                          By by) {
  if (by == kThreads) {
    return MakeInProcessCommunicators(world_size, absl::Minutes(5));
  }
  static int jobs = 0;
  ConnectOptions options;
  options.shared_memory = by != kSockets;
  options.place.world_size = options.place.local_world_size = world_size;
  options.place.job_id = absl::StrCat("benchmark ", jobs++);
  std::vector<std::unique_ptr<Communicator>> ranks(world_size);
  std::vector<std::thread> threads;
  for (int r = 0; r < world_size; ++r) {
    threads.emplace_back([&ranks, options, r]() mutable {
      options.place.rank = options.place.local_rank = r;
      ranks[r] = *ConnectRank(options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

// Rank 0 is timed; the others follow until it sends 0 to go on.
void AllReduce(benchmark::State& state, By by) {
  const int64_t bytes = state.range(0);
  const DType dtype = static_cast<DType>(state.range(1));
  const int world_size = static_cast<int>(state.range(2));
  auto ranks = ConnectThreads(world_size, by);
  std::unique_ptr<Device> device = MakeCpuDevice(0, 1);
  std::unique_ptr<Stream> stream = *device->CreateStream("communicate");
  std::vector<std::unique_ptr<Memory>> data(world_size);
  for (int r = 0; r < world_size; ++r) {
    if (by == kInPlace) data[r] = ranks[r]->Allocate(bytes);
    if (by != kInPlace) data[r] = *device->Allocate(bytes);
    std::memset(data[r]->data(), 0, bytes);
  }
  const auto reduce = [&](int rank) {
    const int64_t count = bytes / SizeOf(dtype);
    return ranks[rank]
        ->AllReduce(data[rank]->data(), count, dtype, ReduceOp::kSum, 1,
                    *stream)
        .ok();
  };
  std::vector<std::thread> followers;
  for (int r = 1; r < world_size; ++r) {
    followers.emplace_back([&, r] {
      while (reduce(r)) {
      }
      ranks[r].reset();
    });
  }
  for (auto _ : state) {
    if (!reduce(0)) state.SkipWithError("all_reduce failed");
  }
  ranks[0]->Abort(absl::CancelledError("done"));
  ranks[0].reset();
  for (std::thread& follower : followers) follower.join();
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetLabel(absl::StrCat(Name(dtype), " x", world_size));
}

void Threads(benchmark::State& state) { AllReduce(state, kThreads); }
void Sockets(benchmark::State& state) { AllReduce(state, kSockets); }
void InPlace(benchmark::State& state) { AllReduce(state, kInPlace); }
void SharedMemory(benchmark::State& state) { AllReduce(state, kSharedMemory); }

void Sizes(benchmark::internal::Benchmark* benchmark) {
  for (int world_size : {2, 4}) {
    for (int64_t bytes : {16, 4096, 65536, 25 << 20}) {
      for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
        benchmark->Args({bytes, static_cast<int64_t>(dtype), world_size});
      }
    }
  }
  benchmark->UseRealTime();
}
BENCHMARK(Threads)->Apply(Sizes);
BENCHMARK(InPlace)->Apply(Sizes);
BENCHMARK(SharedMemory)->Apply(Sizes);
BENCHMARK(Sockets)->Apply(Sizes);

void Reduce(benchmark::State& state) {
  const DType dtype = static_cast<DType>(state.range(0));
  ReduceFunction reduce = *FindReduceFunction(dtype, ReduceOp::kSum);
  const int64_t bytes = 256 << 10;
  std::vector<char> a(bytes);
  std::vector<char> b(bytes);
  for (auto _ : state) {
    reduce(a.data(), a.data(), b.data(), bytes / SizeOf(dtype));
    benchmark::DoNotOptimize(a.data());
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetLabel(std::string(Name(dtype)));
}
BENCHMARK(Reduce)
    ->Arg(static_cast<int64_t>(DType::kF32))
    ->Arg(static_cast<int64_t>(DType::kF16))
    ->Arg(static_cast<int64_t>(DType::kBF16));

}  // namespace
}  // namespace runtime
}  // namespace halftone
