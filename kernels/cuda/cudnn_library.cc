#include "kernels/cuda/cudnn_library.h"

#include <limits>
#include <new>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/targets/target.h"
#include "kernels/cuda/cudnn_parts.h"
#include "runtime/device/cuda/cudnn_error.h"
#include "runtime/device/cuda/native.h"

// The part that reads and writes graphs as JSON takes long to compile.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// An engine that wants more is passed over for one that wants less.
constexpr int64_t kLittleWorkspace = int64_t{1} << 30;
// Engines can be asked about without a device.
constexpr size_t kOldestVersion = 90800;

fe::DataType_t DataType(DType dtype) {
  if (dtype == DType::kF16) return fe::DataType_t::HALF;
  if (dtype == DType::kBF16) return fe::DataType_t::BFLOAT16;
  HT_CHECK(dtype == DType::kF32, "a dtype that cuDNN has no sums of");
  return fe::DataType_t::FLOAT;
}

template <typename Attributes>
Attributes Geometry(const CudnnNode& node) {
  return Attributes()
      .set_pre_padding(node.before)
      .set_post_padding(node.after)
      .set_stride(node.stride)
      .set_dilation(node.dilation);
}

// The library limits the workspace of engines alone, and adds what its nodes
// need themselves (attention's gradient sums queries' in f32, for one).
class NativeGraph : public fe::graph::Graph {
 public:
  int64_t workspace_beside_engines() const {
    return get_fe_workspace_size_subtree();
  }
};

// The library's own graph, made from ours.
class Construction {
 public:
  // compute_capability: of the device that it is for; 0: the one at hand.
  Construction(const CudnnGraph& from, int compute_capability)
      : from_(from), tensors_(from.tensors.size()) {
    graph_.set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    // Before the nodes, which are given a copy: attention asks for it.
    if (compute_capability > 0) graph_.set_sm_version(compute_capability);
    for (const CudnnNode& node : from.nodes) Add(node);
  }
  NativeGraph& graph() { return graph_; }

  // Those in memory are bound by their position + 1.
  static int64_t Uid(int position) { return position + 1; }

 private:
  using Kind = CudnnNode::Kind;

  Tensor Input(const CudnnNode& node, int i) {
    const int position = node.inputs[i];
    Tensor& tensor = tensors_[position];
    if (tensor != nullptr) return tensor;
    const CudnnTensor& t = from_.tensors[position];
    HT_CHECK(!t.internal, "an internal tensor that no earlier node makes");
    tensor = graph_.tensor(fe::graph::Tensor_attributes()
                               .set_uid(Uid(position))
                               .set_dim(t.dims)
                               .set_stride(t.strides)
                               .set_data_type(DataType(t.dtype)));
    return tensor;
  }

  void Output(const CudnnNode& node, int i, Tensor tensor) {
    const int position = node.outputs[i];
    const CudnnTensor& t = from_.tensors[position];
    tensor->set_uid(Uid(position))
        .set_dim(t.dims)
        .set_stride(t.strides)
        .set_output(!t.internal)
        .set_data_type(DataType(t.dtype));
    tensors_[position] = std::move(tensor);
  }

  void Add(const CudnnNode& node) {
    switch (node.kind) {
      case Kind::kConv:
      case Kind::kConvGradImage:
      case Kind::kConvGradFilter:
        return Output(node, 0, Convolve(node));
      case Kind::kAdd:
        return Pointwise(node, fe::PointwiseMode_t::ADD);
      case Kind::kSubtract:
        return Pointwise(node, fe::PointwiseMode_t::SUB);
      case Kind::kMultiply:
        return Pointwise(node, fe::PointwiseMode_t::MUL);
      case Kind::kRelu:
        return Pointwise(node, fe::PointwiseMode_t::RELU_FWD);
      case Kind::kReluGrad:
        return Pointwise(node, fe::PointwiseMode_t::RELU_BWD);
      case Kind::kChannelSums:
      case Kind::kNormGradSums:
        return Sum(node);
      case Kind::kAttention:
        return Attend(node);
      case Kind::kAttentionGrad:
        return AttendGrad(node);
    }
  }

  Tensor Convolve(const CudnnNode& node) {
    const Tensor x = Input(node, 0), y = Input(node, 1);
    if (node.kind == Kind::kConv) {
      return graph_.conv_fprop(
          x, y, Geometry<fe::graph::Conv_fprop_attributes>(node));
    }
    if (node.kind == Kind::kConvGradImage) {
      return graph_.conv_dgrad(
          x, y, Geometry<fe::graph::Conv_dgrad_attributes>(node));
    }
    return graph_.conv_wgrad(x, y,
                             Geometry<fe::graph::Conv_wgrad_attributes>(node));
  }

  void Sum(const CudnnNode& node) {
    const Tensor x = Input(node, 0);
    if (node.kind == Kind::kChannelSums) {
      const auto sums = graph_.genstats(x, fe::graph::Genstats_attributes());
      for (int i = 0; i < 2; ++i) Output(node, i, sums[i]);
      return;
    }
    const auto sums =
        graph_.dbn_weight(x, Input(node, 1), Input(node, 2), Input(node, 3),
                          Input(node, 4), fe::graph::DBN_weight_attributes());
    for (int i = 0; i < 5; ++i) Output(node, i, sums[i]);
  }

  void Attend(const CudnnNode& node) {
    const bool trains = node.outputs.size() > 1;
    const auto made =
        graph_.sdpa(Input(node, 0), Input(node, 1), Input(node, 2),
                    fe::graph::SDPA_attributes()
                        .set_generate_stats(trains)
                        .set_causal_mask(node.causal)
                        .set_attn_scale(node.scale));
    Output(node, 0, made[0]);
    if (trains) Output(node, 1, made[1]);
  }

  void AttendGrad(const CudnnNode& node) {
    const auto made = graph_.sdpa_backward(
        Input(node, 0), Input(node, 1), Input(node, 2), Input(node, 3),
        Input(node, 4), Input(node, 5),
        fe::graph::SDPA_backward_attributes()
            .set_causal_mask(node.causal)
            .set_attn_scale(node.scale)
            .set_deterministic_algorithm(from_.deterministic));
    for (int i = 0; i < 3; ++i) Output(node, i, made[i]);
  }

  // The library is told to hand NaNs on.
  void Pointwise(const CudnnNode& node, fe::PointwiseMode_t mode) {
    const auto attributes = fe::graph::Pointwise_attributes().set_mode(mode);
    const Tensor x = Input(node, 0);
    Output(node, 0,
           node.inputs.size() == 1
               ? graph_.pointwise(x, attributes)
               : graph_.pointwise(x, Input(node, 1), attributes));
  }

  const CudnnGraph from_;
  NativeGraph graph_;
  std::vector<Tensor> tensors_;
};

bool IsAttention(const CudnnGraph& graph) {
  const CudnnNode::Kind kind = graph.nodes[0].kind;
  return kind == CudnnNode::Kind::kAttention ||
         kind == CudnnNode::Kind::kAttentionGrad;
}

std::string Describe(const CudnnGraph& graph) {
  std::string text;
  for (const CudnnTensor& t : graph.tensors) {
    if (t.internal) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", Name(t.dtype), "[",
                    absl::StrJoin(t.dims, ","), "]");
  }
  return text;
}

// Of a call whose failure means that no engine fits.
absl::Status NoEngine(const CudnnGraph& graph, fe::error_t error) {
  // A part of the library that cannot be opened is another matter.
  if (absl::StrContains(error.get_message(), "SUBLIBRARY")) {
    return DeviceError("cuDNN: a part of the library cannot be opened: ",
                       error.get_message());
  }
  return absl::UnimplementedError(absl::StrCat(
      "cuDNN has no engine for ", Describe(graph), ": ", error.get_message()));
}

// Full precision and, if asked for, the same bits on every run.
void LeaveOutEngines(const CudnnGraph& graph, fe::graph::Graph& native) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> notes = {Note::REDUCED_PRECISION_REDUCTION,
                             Note::FFT,
                             Note::WINOGRAD,
                             Note::WINOGRAD_TILE_4x4,
                             Note::WINOGRAD_TILE_6x6,
                             Note::WINOGRAD_TILE_13x13};
  if (graph.deterministic) notes.push_back(Note::NONDETERMINISTIC);
  const bool f32 = graph.tensors[0].dtype == DType::kF32;
  if (!f32 || !graph.tf32) notes.push_back(Note::DOWN_CONVERT_INPUTS);
  // Tensor cores have no f32 operands.
  if (f32 && !graph.tf32) notes.push_back(Note::TENSOR_CORE);
  native.deselect_numeric_notes(notes);
}

// After build_operation_graph: makes a plan of the first engine that fits.
absl::Status Select(const CudnnGraph& graph, NativeGraph& native,
                    int64_t workspace_bytes) {
  auto error = native.create_execution_plans(
      {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
  if (error.is_bad()) return NoEngine(graph, error);
  LeaveOutEngines(graph, native);
  native.deselect_workspace_greater_than(workspace_bytes -
                                         native.workspace_beside_engines());
  error = native.check_support();
  if (error.is_bad()) return NoEngine(graph, error);
  error = native.build_plans();
  if (error.is_bad()) return NoEngine(graph, error);
  int64_t needed = 0;
  error = native.get_workspace_size(needed);
  if (error.is_bad()) return NoEngine(graph, error);
  if (needed <= workspace_bytes) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("cuDNN's engine for ", Describe(graph), " needs ", needed,
                   " bytes of workspace, more than ", workspace_bytes));
}

// The library throws where it is surprised.
template <typename Body>
auto Guarded(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError("cuDNN: out of the host's memory");
  } catch (const std::exception& e) {
    return DeviceError("cuDNN: ", e.what());
  }
}

absl::Status CheckVersion() {
  static const auto& parts = *new absl::Status(CheckCudnnParts(CudnnFolder()));
  HT_RETURN_IF_ERROR(parts);
  const size_t version = cudnnGetVersion();
  if (version >= kOldestVersion) return absl::OkStatus();
  return DeviceError("cuDNN ", version / 10000, ".", version / 100 % 100,
                     " is too old; found in libcudnn.so.9; 9.8 or a newer 9 is "
                     "needed");
}

absl::StatusOr<CudnnEngine> ChooseWithin(
    const CudnnGraph& graph, int compute_capability,
    const std::shared_ptr<fe::DeviceProperties>& properties,
    int64_t workspace_bytes) {
  Construction construction(graph, compute_capability);
  NativeGraph& native = construction.graph();
  auto error = native.validate();
  if (error.is_bad()) return NoEngine(graph, error);
  native.set_device_properties(properties);
  error = native.build_operation_graph();
  if (error.is_bad()) return NoEngine(graph, error);
  HT_RETURN_IF_ERROR(Select(graph, native, workspace_bytes));
  CudnnEngine engine;
  error = native.get_plan_name(engine.name);
  if (error.is_good()) {
    error = native.get_workspace_size(engine.workspace_bytes);
  }
  if (error.is_bad()) return NoEngine(graph, error);
  return engine;
}

class NativeHandle final : public CudnnHandle {
 public:
  NativeHandle(cudnnHandle_t handle, runtime::Device& device)
      : handle_(handle), device_(device) {}
  ~NativeHandle() override { cudnnDestroy(handle_); }
  cudnnHandle_t get() const { return handle_; }
  runtime::Device& device() const { return device_; }

 private:
  cudnnHandle_t handle_;
  runtime::Device& device_;
};

class NativePlan final : public CudnnPlan {
 public:
  NativePlan(const CudnnGraph& graph, std::shared_ptr<CudnnHandle> handle)
      : handle_(std::static_pointer_cast<NativeHandle>(std::move(handle))),
        construction_(graph, 0) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      if (graph.tensors[i].internal) continue;
      bound_.push_back(static_cast<int>(i));
      data_[Construction::Uid(static_cast<int>(i))] = nullptr;
    }
  }

  absl::Status Build(const CudnnGraph& graph, int64_t workspace_bytes,
                     absl::string_view op) {
    HT_RETURN_IF_ERROR(handle_->device().Use());
    NativeGraph& native = construction_.graph();
    auto error = native.validate();
    if (error.is_good()) error = native.build_operation_graph(handle());
    if (error.is_bad()) return Failed("build_operation_graph", op, error);
    const absl::Status selected = Select(graph, native, workspace_bytes);
    if (selected.ok() || ExitCodeOf(selected) == ExitCode::kDevice) {
      return selected;
    }
    return runtime::CudaLibraryError(
        "build_plans", op,
        absl::StrCat(selected.message(), "; ", workspace_bytes,
                     " bytes of workspace are planned. Was the model compiled "
                     "for another GPU than this one?"));
  }

  absl::Status Enqueue(absl::Span<void* const> data, void* workspace,
                       runtime::Stream& stream, absl::string_view op) override {
    for (int position : bound_) {
      data_[Construction::Uid(position)] = data[position];
    }
    HT_RETURN_IF_ERROR(
        HT_CUDA(cudnnSetStream(handle(), runtime::CudaStreamOf(stream)), op));
    return Guarded([&]() -> absl::Status {
      auto error = construction_.graph().execute(handle(), data_, workspace);
      return error.is_good() ? absl::OkStatus() : Failed("execute", op, error);
    });
  }

 private:
  cudnnHandle_t handle() const { return handle_->get(); }
  static absl::Status Failed(absl::string_view call, absl::string_view op,
                             fe::error_t error) {
    return runtime::CudaLibraryError(absl::StrCat("cudnn_frontend ", call), op,
                                     error.get_message());
  }

  std::shared_ptr<NativeHandle> handle_;
  Construction construction_;
  std::vector<int> bound_;
  std::unordered_map<int64_t, void*> data_;
};

}  // namespace

absl::Status ValidateCudnnGraph(const CudnnGraph& graph) {
  return Guarded([&]() -> absl::Status {
    const int newest = Targets().back().compute_capability;
    auto error = Construction(graph, newest).graph().validate();
    if (error.is_good()) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "cuDNN refuses ", Describe(graph), ": ", error.get_message()));
  });
}

absl::StatusOr<CudnnEngine> ChooseCudnnEngine(const CudnnGraph& graph,
                                              absl::string_view target) {
  HT_RETURN_IF_ERROR(CheckVersion());
  // What names no GPU (a test) stands for the newest.
  const Target* known = FindTarget(target);
  const Target& gpu =
      known != nullptr && known->is_gpu() ? *known : Targets().back();
  using Result = absl::StatusOr<CudnnEngine>;
  return Guarded([&]() -> Result {
    const absl::string_view json = gpu.cudnn_device;
    auto properties = std::make_shared<fe::DeviceProperties>();
    auto error = properties->deserialize({json.begin(), json.end()});
    if (error.is_bad()) {
      return DeviceError("cuDNN does not take our description of ", target,
                         ": ", error.get_message());
    }
    Result engine = ChooseWithin(graph, gpu.compute_capability, properties,
                                 kLittleWorkspace);
    // Without a limit attention's gradient keeps a number per query and key,
    // which our own kernel does not.
    if (!absl::IsUnimplemented(engine.status()) || IsAttention(graph)) {
      return engine;
    }
    return ChooseWithin(graph, gpu.compute_capability, properties,
                        std::numeric_limits<int64_t>::max());
  });
}

absl::StatusOr<std::shared_ptr<CudnnHandle>> MakeCudnnHandle(
    runtime::Device& device) {
  HT_RETURN_IF_ERROR(CheckVersion());
  HT_RETURN_IF_ERROR(device.Use());
  cudnnHandle_t handle = nullptr;
  HT_RETURN_IF_ERROR(HT_CUDA(cudnnCreate(&handle), "convolutions"));
  return std::make_shared<NativeHandle>(handle, device);
}

absl::StatusOr<std::unique_ptr<CudnnPlan>> MakeCudnnPlan(
    const CudnnGraph& graph, std::shared_ptr<CudnnHandle> handle,
    int64_t workspace_bytes, absl::string_view op) {
  using Result = absl::StatusOr<std::unique_ptr<CudnnPlan>>;
  return Guarded([&]() -> Result {
    auto plan = std::make_unique<NativePlan>(graph, std::move(handle));
    HT_RETURN_IF_ERROR(plan->Build(graph, workspace_bytes, op));
    return std::unique_ptr<CudnnPlan>(std::move(plan));
  });
}

}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
