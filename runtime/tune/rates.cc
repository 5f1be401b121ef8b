#include "runtime/tune/rates.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/substitute.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/schema/op_schema.h"
#include "graph/text/text.h"
#include "runtime/device/host_info.h"

namespace halftone {
namespace runtime {
namespace {

// $0: the matrices' side, $1: elements of the copy, $2: dtype of the product.
constexpr char kProgram[] = R"(program "rates" dim B
entry eval {
  feed x : $2[$0,$0]
  feed y : $2[$0,$0]
  feed v : f32[$1]
  product: matmul(X=x, Y=y) -> (Out=p : $2[$0,$0])   forward
  copy: relu(X=v) -> (Out=c : f32[$1])   forward
  result p = p
  result c = c
}
)";

DType LowProductsIn(const Block& block) {
  for (OpId id : block.ops()) {
    const Op& op = block.op(id);
    if (op.body != nullptr) {
      const DType inside = LowProductsIn(*op.body);
      if (IsLow(inside)) return inside;
    } else if (op.schema->flops() != nullptr && IsLow(block.dtype(op.in(0)))) {
      return block.dtype(op.in(0));
    }
  }
  return DType::kF32;
}

// The other ranks of this machine, which move memory as well: a copy on each of
// their cores until it is destroyed.
class Neighbours {
 public:
  Neighbours(int cores, int64_t bytes) {
    for (int i = 0; i < cores; ++i) {
      copies_.emplace_back([this, bytes] {
        std::vector<char> from(bytes), to(bytes);
        while (!stop_) std::memcpy(to.data(), from.data(), bytes);
      });
    }
  }
  ~Neighbours() {
    stop_ = true;
    for (std::thread& copy : copies_) copy.join();
  }
  // Of ranks with host kernels that fit on this machine.
  static int CoresOf(const kernels::BindContext& bind, const Device& device) {
    if (device.asynchronous()) return 0;
    const int all = std::min<int64_t>(int64_t{bind.world_size} * bind.threads,
                                      UsableCores());
    return std::max(0, all - bind.threads);
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> copies_;
};

class Meter {
 public:
  Meter(const kernels::KernelRegistry& kernels,
        const kernels::BindContext& bind, int runs, Bench& bench,
        Device& device)
      : kernels_(kernels),
        bind_(bind),
        runs_(runs),
        bench_(bench),
        device_(device) {}

  // `amount` per second of the fastest kernel of that op.
  absl::StatusOr<int64_t> Rate(const Program& program, const char* name,
                               double amount) {
    const Block& block = program.FindEntry("eval")->block();
    const kernels::BoundOp op(block, block.op(block.FindOp(name)),
                              SymbolValues{}, bind_);
    const auto candidates = kernels_.Find(op);
    if (!candidates.ok()) return 0;
    double least = 0;  // microseconds
    for (const kernels::Candidate* candidate : *candidates) {
      if (candidate->name == kReference) continue;
      const int64_t workspace =
          candidate->workspace_bytes ? candidate->workspace_bytes(op) : 0;
      if (!bench_.Take(op, workspace).ok()) continue;
      const auto kernel = candidate->prepare(op, device_);
      if (!kernel.ok()) continue;
      HT_ASSIGN_OR_RETURN(const std::vector<double> times,
                          bench_.Times(**kernel, runs_));
      if (least == 0 || times[0] < least) least = times[0];
    }
    return least > 0 ? static_cast<int64_t>(1e6 * amount / least) : 0;
  }

 private:
  const kernels::KernelRegistry& kernels_;
  const kernels::BindContext& bind_;
  int runs_;
  Bench& bench_;
  Device& device_;
};

}  // namespace

RateSizes RateSizesOf(const Device& device) {
  if (device.asynchronous()) return {8192, int64_t{1} << 26};
  return {1024, int64_t{1} << 25};
}

DType LowProductsOf(const Program& program) {
  for (const auto& entry : program.entries()) {
    const DType low = LowProductsIn(entry->block());
    if (IsLow(low)) return low;
  }
  return DType::kF32;
}

absl::StatusOr<TuningTable::Rates> MeasureRates(
    const kernels::KernelRegistry& kernels, const kernels::BindContext& bind,
    const RateSizes& sizes, DType low, int runs, Bench& bench, Device& device) {
  const auto program_of = [&sizes](DType dtype) {
    return Parse(absl::Substitute(kProgram, sizes.side, sizes.elements,
                                  std::string(Name(dtype))),
                 "rates");
  };
  Meter meter(kernels, bind, runs, bench, device);
  const double side = static_cast<double>(sizes.side);
  const double flops = 2 * side * side * side;
  HT_ASSIGN_OR_RETURN(const auto f32, program_of(DType::kF32));
  TuningTable::Rates rates;
  {
    const int64_t bytes = 4 * sizes.elements;
    const Neighbours neighbours(Neighbours::CoresOf(bind, device), bytes);
    HT_ASSIGN_OR_RETURN(
        rates.memory, meter.Rate(*f32, "copy", 2 * static_cast<double>(bytes)));
  }
  HT_ASSIGN_OR_RETURN(rates.f32, meter.Rate(*f32, "product", flops));
  if (IsLow(low)) {
    HT_ASSIGN_OR_RETURN(const auto program, program_of(low));
    HT_ASSIGN_OR_RETURN(rates.low, meter.Rate(*program, "product", flops));
  }
  return rates;
}

}  // namespace runtime
}  // namespace halftone
