#include "kernels/cuda/cudnn_cache.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "gtest/gtest.h"

namespace halftone {
namespace kernels {
namespace cuda {
namespace {

using ::testing::ElementsAre;

class Plan : public CudnnPlan {
 public:
  explicit Plan(std::shared_ptr<CudnnHandle> handle)
      : handle_(std::move(handle)) {}
  absl::Status Enqueue(absl::Span<void* const>, void*, runtime::Stream&,
                       absl::string_view) override {
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<CudnnHandle> handle_;
};

CudnnGraph GraphOf(const std::vector<int64_t>& dims) {
  TensorDesc desc;
  desc.dtype = DType::kF16;
  desc.dims.assign(dims.begin(), dims.end());
  CudnnGraph graph;
  graph.Add(desc);
  return graph;
}

class CudnnCacheTest : public ::testing::Test {
 protected:
  std::shared_ptr<CudnnPlan> PlanOf(const CudnnGraph& graph,
                                    runtime::Device& device, int64_t workspace,
                                    const std::string& op) {
    const auto plan = cache_.PlanOf(graph, device, workspace, op);
    return plan.ok() ? *plan : nullptr;
  }

  std::unique_ptr<runtime::Device> first_ = runtime::MakeCpuDevice(0, 1);
  std::unique_ptr<runtime::Device> second_ = runtime::MakeCpuDevice(1, 1);
  std::vector<std::string> built_;  // for which op
  int handles_ = 0;                 // made
  absl::Status status_;             // of building
  CudnnCache cache_{
      [this](runtime::Device&) -> absl::StatusOr<std::shared_ptr<CudnnHandle>> {
        ++handles_;
        return std::make_shared<CudnnHandle>();
      },
      [this](
          const CudnnGraph&, std::shared_ptr<CudnnHandle> handle, int64_t,
          absl::string_view op) -> absl::StatusOr<std::unique_ptr<CudnnPlan>> {
        built_.emplace_back(op);
        HT_RETURN_IF_ERROR(status_);
        return std::make_unique<Plan>(std::move(handle));
      }};
};

TEST_F(CudnnCacheTest, LikeConvolutionsOfADeviceShareAPlan) {
  const CudnnGraph graph = GraphOf({1, 8, 4, 4});
  const auto plan = PlanOf(graph, *first_, 64, "conv1");
  EXPECT_EQ(PlanOf(graph, *first_, 64, "conv2"), plan);
  const auto elsewhere = PlanOf(graph, *second_, 64, "on the second");
  const auto larger = PlanOf(graph, *first_, 128, "with more workspace");
  const auto other = PlanOf(GraphOf({1, 8, 4, 5}), *first_, 64, "conv3");
  EXPECT_THAT(built_, ElementsAre("conv1", "on the second",
                                  "with more workspace", "conv3"));
  EXPECT_EQ(handles_, 2);  // one per device
}

TEST_F(CudnnCacheTest, APlanEndsWithItsKernels) {
  const CudnnGraph graph = GraphOf({1, 8, 4, 4});
  const std::weak_ptr<CudnnPlan> ended = PlanOf(graph, *first_, 64, "conv1");
  EXPECT_TRUE(ended.expired());
  EXPECT_NE(PlanOf(graph, *first_, 64, "conv1"), nullptr);
  EXPECT_EQ(built_.size(), 2u);
}

TEST_F(CudnnCacheTest, AnErrorIsNotKept) {
  const CudnnGraph graph = GraphOf({1, 8, 4, 4});
  status_ = DeviceError("no engine");
  EXPECT_EQ(cache_.PlanOf(graph, *first_, 64, "conv1").status(), status_);
  status_ = absl::OkStatus();
  EXPECT_NE(PlanOf(graph, *first_, 64, "conv1"), nullptr);
}

}  // namespace
}  // namespace cuda
}  // namespace kernels
}  // namespace halftone
