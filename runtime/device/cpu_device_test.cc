#include <sched.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/device/device_conformance.h"
#include "runtime/device/host_info.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance,
                         ::testing::Values(DeviceCase{
                             "cpu", [] { return MakeCpuDevice(0, 1); }, false}),
                         [](const auto& info) { return info.param.name; });

TEST(CpuDevice, DescribesItself) {
  std::unique_ptr<Device> device = MakeCpuDevice(3, 2);
  EXPECT_EQ(device->kind(), "cpu");
  EXPECT_EQ(device->target(), "cpu");
  EXPECT_EQ(device->ordinal(), 3);
  EXPECT_THAT(device->Description(), HasSubstr(", 2 of "));
  auto stream = device->CreateStream("compute");
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ((*stream)->threads(), 2);
  EXPECT_EQ((*stream)->native(), nullptr);
}

TEST(CpuDevice, MemoryIsZeroed) {
  std::unique_ptr<Device> device = MakeCpuDevice(0, 1);
  for (int64_t bytes : {1000, 1 << 20, (5 << 20) + 3}) {
    for (int again = 0; again < 2; ++again) {
      auto memory = device->Allocate(bytes);
      ASSERT_TRUE(memory.ok()) << memory.status();
      auto* data = static_cast<uint8_t*>((*memory)->data());
      EXPECT_EQ(std::vector<uint8_t>(data, data + bytes),
                std::vector<uint8_t>(bytes, 0));
      std::fill(data, data + bytes, 1);
    }
  }
}

TEST(CpuDevice, AtLeastOneThread) {
  auto stream = MakeCpuDevice(0, 0)->CreateStream("compute");
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ((*stream)->threads(), 1);
}

TEST(HostInfo, ReadsCpuinfo) {
  constexpr char kText[] =
      "processor\t: 0\n"
      "model name\t: AMD EPYC 9654 96-Core Processor\n"
      "flags\t\t: fpu avx2 f16c avx512f avx512_bf16 amx_bf16 avx512fancy\n"
      "\nprocessor\t: 1\nmodel name\t: other\n";
  EXPECT_EQ(ProcessorName(kText), "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(ProcessorExtensions(kText), "avx2 avx512f avx512_bf16 amx_bf16");
  EXPECT_EQ(ProcessorExtensions("Features : fp asimd bf16\n"), "asimd bf16");
  EXPECT_EQ(ProcessorExtensions(""), "");
  EXPECT_NE(ProcessorName(""), "");
}

TEST(HostInfo, ReadsMeminfo) {
  EXPECT_EQ(AvailableBytes("MemTotal: 9 kB\nMemAvailable:   1024 kB\n"),
            1 << 20);
  EXPECT_EQ(AvailableBytes("MemTotal: 9 kB\n"), -1);
  EXPECT_EQ(AvailableBytes("MemAvailable: many kB\n"), -1);
}

TEST(HostInfo, KnowsThisMachine) {
  EXPECT_GE(UsableCores(), 1);
  EXPECT_GT(FreeHostBytes(), 0);
}

TEST(HostInfo, KeepsAThreadToCores) {
  const int usable = UsableCores();
  const auto cores_of_thread = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
  };
  const int before = cores_of_thread();
  if (before != usable) GTEST_SKIP() << "a quota, or no affinity";
  std::thread([&] {
    KeepToCores(usable - 1, 1);
    EXPECT_EQ(cores_of_thread(), 1);
    std::thread([&] { EXPECT_EQ(cores_of_thread(), 1); }).join();
    EXPECT_EQ(UsableCores(), usable);
    KeepToCores(0, before);
    EXPECT_EQ(cores_of_thread(), before);
    KeepToCores(before, 1);  // there is none
    EXPECT_EQ(cores_of_thread(), before);
  }).join();
  EXPECT_EQ(cores_of_thread(), before);
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
