// A rank for communicator_processes_test: connects as its environment says,
// reduces, and misbehaves if asked to. Prints the hash of all results.
//
// communicator_rank CALLS ELEMENTS [kill=CALL | stop=CALL | exit=CALL]
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/base/text.h"
#include "runtime/collective/connect.h"
#include "runtime/rendezvous/token.h"

namespace halftone {
namespace runtime {
namespace {

struct Arguments {
  int calls = 1;
  int64_t elements = 1;
  int kill = -1;
  int stop = -1;
  int exit = -1;
  int hang = -1;  // before it has met the others
};

void Misbehave(const Arguments& arguments, int call) {
  if (call == arguments.kill) raise(SIGKILL);
  if (call == arguments.stop) raise(SIGSTOP);
  if (call == arguments.exit) _exit(3);
}

absl::Status Reduce(const Arguments& arguments, Communicator& communicator) {
  std::unique_ptr<Device> device = MakeCpuDevice(0, 1);
  HT_ASSIGN_OR_RETURN(auto stream, device->CreateStream("communicate"));
  std::vector<half> data(arguments.elements);
  uint64_t hash = 0;
  for (int call = 0; call < arguments.calls; ++call) {
    Misbehave(arguments, call);
    for (int64_t i = 0; i < arguments.elements; ++i) {
      const int64_t x = (i * 37 + call * 11 + communicator.rank() * 101) % 997;
      data[i] = half(static_cast<float>(x) / 64);
    }
    HT_RETURN_IF_ERROR(communicator.AllReduce(
        data.data(), data.size(), DType::kF16, ReduceOp::kSum, 1, *stream));
    const absl::string_view bytes(reinterpret_cast<const char*>(data.data()),
                                  data.size() * sizeof(half));
    hash = hash * 31 + StableHash(bytes);
  }
  std::printf("%s\n", Hex64(hash).c_str());
  return absl::OkStatus();
}

absl::Status Main(const Arguments& arguments) {
  if (arguments.hang >= 0) raise(SIGSTOP);
  const Environment env = CurrentEnvironment();
  ConnectOptions options;
  HT_ASSIGN_OR_RETURN(options.place, FindRank(env));
  HT_ASSIGN_OR_RETURN(options.token, FindToken(env));
  auto tmp = env.find("TMPDIR");
  if (tmp != env.end()) options.tmp_dir = tmp->second;
  options.connect_timeout = absl::Seconds(20);
  auto patience = env.find("TEST_CONNECT_SECONDS");
  int seconds = 0;
  if (patience != env.end() && absl::SimpleAtoi(patience->second, &seconds)) {
    options.connect_timeout = absl::Seconds(seconds);
  }
  options.timeout = absl::Seconds(3);
  HT_ASSIGN_OR_RETURN(auto communicator, ConnectRank(options));
  auto nodes = env.find("TEST_RANKS_PER_NODE");
  int ranks_per_node = 0;
  if (nodes != env.end() && absl::SimpleAtoi(nodes->second, &ranks_per_node)) {
    HT_RETURN_IF_ERROR(communicator->ReduceByNodes(ranks_per_node));
  }
  return Reduce(arguments, *communicator);
}

int Run(int argc, char** argv) {
  Arguments arguments;
  if (argc < 3 || !absl::SimpleAtoi(argv[1], &arguments.calls) ||
      !absl::SimpleAtoi(argv[2], &arguments.elements)) {
    return 2;
  }
  for (int i = 3; i < argc; ++i) {
    absl::string_view word = argv[i];
    int* number = absl::ConsumePrefix(&word, "kill=")   ? &arguments.kill
                  : absl::ConsumePrefix(&word, "stop=") ? &arguments.stop
                  : absl::ConsumePrefix(&word, "exit=") ? &arguments.exit
                  : absl::ConsumePrefix(&word, "hang=") ? &arguments.hang
                                                        : nullptr;
    if (number == nullptr || !absl::SimpleAtoi(word, number)) return 2;
  }
  const absl::Status status = Main(arguments);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone

int main(int argc, char** argv) { return halftone::runtime::Run(argc, argv); }
