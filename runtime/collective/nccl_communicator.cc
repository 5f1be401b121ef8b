#include "runtime/collective/nccl_communicator.h"

#include <cstring>
#include <thread>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/check.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/half.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/collective/reduce.h"
#include "runtime/collective/transfers.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_error.h"
#include "runtime/device/cuda/native.h"

namespace halftone {
namespace runtime {
namespace {

// NCCL takes a call on a thread of its own, in about 100 microseconds; the
// host's waits look once a millisecond.
constexpr absl::Duration kTakesACall = absl::Milliseconds(1);
constexpr int kLooks = 10;  // at least, however slow this thread is

// A dtype that FindReduceFunction knows.
ncclDataType_t NcclTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF64:
      return ncclFloat64;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
    case DType::kU8:
      return ncclUint8;
    default:
      return ncclFloat32;
  }
}

// A number of the dtype, as NCCL reads it.
struct Scalar {
  alignas(8) char bytes[8] = {};
};
template <typename T>
Scalar ScalarOf(T value) {
  Scalar scalar;
  std::memcpy(scalar.bytes, &value, sizeof(value));
  return scalar;
}
Scalar ScalarOf(DType dtype, float value) {
  switch (dtype) {
    case DType::kF16:
      return ScalarOf(half(value));
    case DType::kBF16:
      return ScalarOf(bfloat16(value));
    case DType::kF64:
      return ScalarOf(static_cast<double>(value));
    default:
      return ScalarOf(value);
  }
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<Communicator> host,
                                   NcclDevice device, const NcclLimits& limits,
                                   const NcclApi& api)
    : api_(api),
      limits_(limits),
      device_(std::move(device)),
      host_(std::move(host)) {}

absl::StatusOr<std::unique_ptr<Communicator>> NcclCommunicator::Connect(
    std::unique_ptr<Communicator> host, NcclDevice device,
    const NcclLimits& limits, const NcclApi& api) {
  std::unique_ptr<NcclCommunicator> communicator(
      new NcclCommunicator(std::move(host), std::move(device), limits, api));
  HT_RETURN_IF_ERROR(communicator->device_.use());
  HT_ASSIGN_OR_RETURN(const ncclUniqueId id, communicator->AgreeOnId());
  HT_RETURN_IF_ERROR(communicator->Open(id));
  communicator->device_.set_wait_guard(
      [c = communicator.get()](
          const std::function<absl::StatusOr<bool>()>& done) {
        return c->AwaitDevice(done);
      });
  return {std::move(communicator)};
}

// Rank 0's message: "+" and the id, or "-" and why there is none.
absl::StatusOr<ncclUniqueId> NcclCommunicator::AgreeOnId() {
  std::string mine;
  if (rank() == 0) {
    ncclUniqueId id;
    const absl::Status made =
        HT_CUDA(api_.ncclGetUniqueId(&id), "the ranks' meeting");
    mine = made.ok() ? absl::StrCat("+", absl::string_view(id.internal,
                                                           sizeof(id.internal)))
                     : absl::StrCat("-", made.message());
  }
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      host_->AllGather(mine));
  if (all[0].empty() || all[0][0] != '+') {
    return CommunicationError("rank 0: ",
                              all[0].substr(all[0].empty() ? 0 : 1));
  }
  ncclUniqueId id;
  if (all[0].size() != 1 + sizeof(id.internal)) {
    return CommunicationError("rank 0 sent an id of ", all[0].size() - 1,
                              " bytes, expected ", sizeof(id.internal),
                              ": all ranks need the same NCCL");
  }
  std::memcpy(id.internal, all[0].data() + 1, sizeof(id.internal));
  return id;
}

absl::Status NcclCommunicator::Open(const ncclUniqueId& id) {
  const std::string who = absl::StrCat("rank ", rank(), " of ", world_size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // whoever waits for a peer can give up
  absl::Status opened;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const ncclResult_t code =
        api_.ncclCommInitRankConfig(&comm_, world_size(), id, rank(), &config);
    if (code != ncclSuccess && code != ncclInProgress) {
      opened = CudaCallStatus(code, "ncclCommInitRankConfig", who);
    }
  }
  if (opened.ok()) {
    opened = host_->Await("connecting over NCCL", limits_.connect,
                          [this] { return IsReady(); });
  }
  return opened.ok() ? opened : Fail(opened);
}

absl::StatusOr<bool> NcclCommunicator::IsReady() {
  std::lock_guard<std::mutex> lock(mutex_);
  HT_RETURN_IF_ERROR(failed_);
  const std::string who = absl::StrCat("rank ", rank(), " of ", world_size());
  // The whole first: while it splits, NCCL may write the others.
  for (const ncclComm_t* comm : {&comm_, &inside_, &between_}) {
    if (*comm == nullptr) continue;
    ncclResult_t state = ncclSuccess;
    HT_RETURN_IF_ERROR(HT_CUDA(api_.ncclCommGetAsyncError(*comm, &state), who));
    if (state == ncclInProgress) return false;
    if (state != ncclSuccess) return CudaCallStatus(state, "NCCL", who);
  }
  return true;
}

std::vector<ncclComm_t> NcclCommunicator::Comms() const {
  std::vector<ncclComm_t> all;
  for (ncclComm_t comm : {between_, inside_, comm_}) {
    if (comm != nullptr) all.push_back(comm);
  }
  return all;
}

absl::Status NcclCommunicator::ReduceByNodes(int ranks_per_node) {
  if (ranks_per_node == 1 || ranks_per_node == world_size()) {
    return absl::OkStatus();
  }
  HT_CHECK(pre_scaled_sums_.empty(), "the ranks have not added anything yet");
  const auto split = [this](const char* what, int color, ncclComm_t* made) {
    return Enqueue("ncclCommSplit", what, [this, color, made] {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      const ncclResult_t code =
          api_.ncclCommSplit(comm_, color, rank(), made, &config);
      // NCCL calls it a success when it has begun.
      return code == ncclSuccess ? ncclInProgress : code;
    });
  };
  HT_RETURN_IF_ERROR(split("connecting the ranks of a node",
                           rank() / ranks_per_node, &inside_));
  HT_RETURN_IF_ERROR(
      split("connecting the nodes", rank() % ranks_per_node, &between_));
  ranks_per_node_ = ranks_per_node;
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Enqueue(
    absl::string_view name, const std::string& what,
    const std::function<ncclResult_t()>& call) {
  HT_RETURN_IF_ERROR(device_.use());
  absl::Status status;
  ncclResult_t code = ncclSuccess;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    HT_RETURN_IF_ERROR(failed_);
    code = call();
    if (code != ncclSuccess && code != ncclInProgress) {
      status = CudaCallStatus(
          code, name,
          absl::StrCat(what, " on rank ", rank(), " of ", world_size()));
    }
  }
  if (status.ok() && code == ncclInProgress) status = AwaitTaken(what);
  return status.ok() ? status : Fail(status);
}

absl::Status NcclCommunicator::AwaitTaken(const std::string& what) {
  const MonotonicTime end = MonotonicTime::Now() + kTakesACall;
  for (int looks = 0; looks < kLooks || MonotonicTime::Now() < end; ++looks) {
    const absl::StatusOr<bool> ready = IsReady();
    if (!ready.ok()) break;  // the host knows more of the peers
    if (*ready) return absl::OkStatus();
    std::this_thread::yield();
  }
  return host_->Await(what, limits_.collective, [this] { return IsReady(); });
}

absl::StatusOr<ncclRedOp_t> NcclCommunicator::OperatorOf(DType dtype,
                                                         ReduceOp op,
                                                         float pre_scale) {
  HT_RETURN_IF_ERROR(FindReduceFunction(dtype, op).status());
  if (op == ReduceOp::kMax) return ncclMax;
  if (op == ReduceOp::kMin) return ncclMin;
  if (pre_scale == 1 || FindScaleFunction(dtype, op) == nullptr) return ncclSum;
  const auto known = pre_scaled_sums_.find({dtype, pre_scale});
  if (known != pre_scaled_sums_.end()) return known->second;
  Scalar scalar = ScalarOf(dtype, pre_scale);
  ncclRedOp_t made = ncclSum;
  HT_RETURN_IF_ERROR(Enqueue("ncclRedOpCreatePreMulSum", "all_reduce", [&] {
    return api_.ncclRedOpCreatePreMulSum(&made, scalar.bytes, NcclTypeOf(dtype),
                                         ncclScalarHostImmediate, adding());
  }));
  pre_scaled_sums_[{dtype, pre_scale}] = made;
  return made;
}

absl::Status NcclCommunicator::AllReduce(void* data, int64_t count, DType dtype,
                                         ReduceOp op, float pre_scale,
                                         Stream& stream) {
  HT_ASSIGN_OR_RETURN(const ncclRedOp_t how, OperatorOf(dtype, op, pre_scale));
  if (count == 0) return absl::OkStatus();
  const Call call{Collective::kAllReduce, dtype, op, 0, count, pre_scale};
  if (ranks_per_node_ > 0) {
    return AllReduceByNodes(call, static_cast<char*>(data), how, stream);
  }
  return Enqueue("ncclAllReduce", Describe(call), [&] {
    return api_.ncclAllReduce(data, data, count, NcclTypeOf(dtype), how, comm_,
                              CudaStreamOf(stream));
  });
}

// As HierarchicalTransfers does it. All ranks get the same bits, as each
// element is added between the nodes once.
absl::Status NcclCommunicator::AllReduceByNodes(const Call& call, char* data,
                                                ncclRedOp_t how,
                                                Stream& stream) {
  const ncclDataType_t type = NcclTypeOf(call.dtype);
  const cudaStream_t on = CudaStreamOf(stream);
  const std::string what = Describe(call);
  const int64_t size = SizeOf(call.dtype);
  const int64_t part = NodePart(call.count, size, ranks_per_node_);
  const int place = rank() % ranks_per_node_;
  // Numbers are scaled where they are added first.
  HT_ASSIGN_OR_RETURN(const ncclRedOp_t plain,
                      OperatorOf(call.dtype, call.op, /*pre_scale=*/1));
  const auto reduce = [&](ncclComm_t comm, char* at, int64_t count,
                          ncclRedOp_t op) {
    return Enqueue("ncclAllReduce", what, [&] {
      return api_.ncclAllReduce(at, at, count, type, op, comm, on);
    });
  };
  if (part > 0) {
    char* const mine = data + place * part * size;
    HT_RETURN_IF_ERROR(Enqueue("ncclReduceScatter", what, [&] {
      return api_.ncclReduceScatter(data, mine, part, type, how, inside_, on);
    }));
    HT_RETURN_IF_ERROR(reduce(between_, mine, part, plain));
    HT_RETURN_IF_ERROR(Enqueue("ncclAllGather", what, [&] {
      return api_.ncclAllGather(mine, data, part, type, inside_, on);
    }));
  }
  const int64_t left = call.count - part * ranks_per_node_;
  if (left == 0) return absl::OkStatus();
  char* const rest = data + part * ranks_per_node_ * size;
  HT_RETURN_IF_ERROR(reduce(inside_, rest, left, how));
  if (place == 0) HT_RETURN_IF_ERROR(reduce(between_, rest, left, plain));
  return Enqueue("ncclBroadcast", what, [&] {
    return api_.ncclBroadcast(rest, rest, left, type, /*root=*/0, inside_, on);
  });
}

absl::Status NcclCommunicator::ReduceScatter(void* data, int64_t count,
                                             DType dtype, float pre_scale,
                                             Stream& stream) {
  if (ranks_per_node_ > 0) {
    return Communicator::ReduceScatter(data, count, dtype, pre_scale, stream);
  }
  const ReduceOp op = ReduceOp::kSum;
  HT_ASSIGN_OR_RETURN(const ncclRedOp_t how, OperatorOf(dtype, op, pre_scale));
  if (count == 0) return absl::OkStatus();
  const Call call{Collective::kReduceScatter, dtype, op, 0, count, pre_scale};
  char* const mine = static_cast<char*>(data) + rank() * count * SizeOf(dtype);
  return Enqueue("ncclReduceScatter", Describe(call), [&] {
    return api_.ncclReduceScatter(data, mine, count, NcclTypeOf(dtype), how,
                                  comm_, CudaStreamOf(stream));
  });
}

absl::Status NcclCommunicator::Broadcast(void* data, int64_t bytes, int root,
                                         Stream& stream) {
  if (root < 0 || root >= world_size()) {
    return CompilerBug("broadcast from rank ", root, " of ", world_size());
  }
  if (bytes == 0) return absl::OkStatus();
  Call call{Collective::kBroadcast};
  call.root = root;
  call.count = bytes;
  return Enqueue("ncclBroadcast", Describe(call), [&] {
    return api_.ncclBroadcast(data, data, bytes, ncclUint8, root, comm_,
                              CudaStreamOf(stream));
  });
}

absl::Status NcclCommunicator::GatherParts(void* data, int64_t bytes,
                                           Stream& stream) {
  if (bytes == 0) return absl::OkStatus();
  Call call{Collective::kGatherParts};
  call.count = bytes;
  const char* const mine = static_cast<const char*>(data) + rank() * bytes;
  return Enqueue("ncclAllGather", Describe(call), [&] {
    return api_.ncclAllGather(mine, data, bytes, ncclUint8, comm_,
                              CudaStreamOf(stream));
  });
}

absl::StatusOr<std::vector<std::string>> NcclCommunicator::AllGather(
    absl::string_view mine) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    HT_RETURN_IF_ERROR(failed_);
  }
  auto all = host_->AllGather(mine);
  if (!all.ok()) return Fail(all.status());
  return all;
}

absl::Status NcclCommunicator::Barrier() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    HT_RETURN_IF_ERROR(failed_);
  }
  const absl::Status status = host_->Barrier();
  return status.ok() ? status : Fail(status);
}

absl::Status NcclCommunicator::Await(
    absl::string_view what, absl::Duration timeout,
    const std::function<absl::StatusOr<bool>()>& done) {
  return host_->Await(what, timeout, done);
}

absl::Status NcclCommunicator::AwaitDevice(
    const std::function<absl::StatusOr<bool>()>& done) {
  const absl::Status status =
      host_->Await("a step on the device", limits_.collective,
                   [&]() -> absl::StatusOr<bool> {
                     HT_RETURN_IF_ERROR(IsReady().status());
                     return done();
                   });
  return status.ok() ? status : Fail(status);
}

absl::Status NcclCommunicator::Fail(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failed_.ok()) return failed_;
  }
  FailWith(status, status);
  return status;
}

void NcclCommunicator::Abort(const absl::Status& reason) {
  FailWith(
      CommunicationError("aborted by rank ", rank(), ": ", reason.message()),
      reason);
}

void NcclCommunicator::FailWith(const absl::Status& status,
                                const absl::Status& reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failed_.ok()) failed_ = status;
  }
  // The peers first: what is below may take a while.
  host_->Abort(reason);
  AbortDevice();
}

void NcclCommunicator::OnAbort(std::function<bool()> drop) {
  std::lock_guard<std::mutex> lock(mutex_);
  drop_graphs_ = std::move(drop);
}

void NcclCommunicator::AbortDevice() {
  std::function<bool()> drop;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (comm_ == nullptr) return;
    drop = drop_graphs_;
  }
  (void)device_.use();
  if (drop != nullptr && !drop()) return;
  std::vector<ncclComm_t> comms;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    comms = Comms();
    comm_ = inside_ = between_ = nullptr;
  }
  // Kernels of NCCL that wait for a peer end with the communicator; without
  // that the device would never be done and its memory never free.
  for (ncclComm_t comm : comms) (void)api_.ncclCommAbort(comm);
}

// The peers are here too, or will be soon: NCCL frees what they share. One that
// does not come shall not hold this one up.
void NcclCommunicator::Leave() {
  for (const auto& [key, made] : pre_scaled_sums_) {
    (void)api_.ncclRedOpDestroy(made, adding());
  }
  const MonotonicTime end = MonotonicTime::Now() + limits_.leave;
  for (ncclComm_t comm : Comms()) {
    ncclResult_t state = api_.ncclCommFinalize(comm);
    while (state == ncclInProgress && MonotonicTime::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
      if (api_.ncclCommGetAsyncError(comm, &state) != ncclSuccess) break;
    }
    (void)(state == ncclSuccess ? api_.ncclCommDestroy(comm)
                                : api_.ncclCommAbort(comm));
  }
  comm_ = inside_ = between_ = nullptr;
}

NcclCommunicator::~NcclCommunicator() {
  device_.set_wait_guard(nullptr);
  std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ == nullptr) return;
  (void)device_.use();
  if (failed_.ok()) {
    Leave();
    return;
  }
  for (ncclComm_t comm : Comms()) (void)api_.ncclCommAbort(comm);
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(
    std::unique_ptr<Communicator> host, Device* device,
    absl::Duration connect_timeout, absl::Duration timeout) {
  if (device->kind() != "cuda") {
    return CompilerBug("NCCL on a device of kind ", device->kind());
  }
  auto* const cuda = static_cast<CudaDevice*>(device);
  NcclLimits limits;
  limits.connect = connect_timeout;
  limits.collective = timeout;
  return NcclCommunicator::Connect(
      std::move(host),
      {[cuda] { return cuda->Use(); },
       [cuda](WaitGuard guard) { cuda->SetWaitGuard(std::move(guard)); }},
      limits, LinkedNccl());
}

}  // namespace runtime
}  // namespace halftone
