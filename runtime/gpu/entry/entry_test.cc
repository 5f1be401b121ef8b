// The real library, opened as the binary does it; needs no device.
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/gpu/targets.h"

namespace halftone {
namespace runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kLibrary[] = "tools/libhalftone_cuda.so";
constexpr char kList[] = "tools/libhalftone_cuda.kernels";

TEST(Entry, OpensAndRegistersKernels) {
  const auto library = GpuLibrary::OpenAt(kLibrary);
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_FALSE((*library)->kernels().Keys().empty());
  EXPECT_EQ(*GpuLibrary::OpenAt(kLibrary), *library);  // opened once
}

// On any machine: either there is a device, or the error says what is missing.
TEST(Entry, DevicesOrAClearError) {
  const auto library = GpuLibrary::OpenAt(kLibrary);
  ASSERT_TRUE(library.ok()) << library.status();
  const GpuLibrary& gpu = **library;
  const auto count = gpu->count_devices();
  if (count.ok()) {
    const auto device = gpu->make_device(0);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ((*device)->kind(), "cuda");
    EXPECT_EQ(*gpu->target_of(0), (*device)->target());
    return;
  }
  EXPECT_EQ(ExitCodeOf(count.status()), ExitCode::kDevice);
  EXPECT_EQ(gpu->make_device(0).status(), count.status());
  EXPECT_EQ(gpu->target_of(0).status(), count.status());
  if (!MayHaveGpu()) {
    EXPECT_THAT(std::string(count.status().message()),
                AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("code 35")));
  }
}

TEST(Entry, ErrorsCrossTheDoorWhole) {
  const auto library = GpuLibrary::OpenAt(kLibrary);
  ASSERT_TRUE(library.ok()) << library.status();
  const auto cpu = MakeCpuDevice(0, 1);
  const auto connected = (**library)->connect(
      MakeSingleCommunicator(), cpu.get(), absl::Seconds(1), absl::Seconds(1));
  EXPECT_EQ(ExitCodeOf(connected.status()), ExitCode::kCompilerBug);
  EXPECT_THAT(std::string(connected.status().message()), HasSubstr("kind cpu"));
}

TEST(Entry, TheListIsOfTheLibrarysKernels) {
  const auto library = GpuLibrary::OpenAt(kLibrary);
  ASSERT_TRUE(library.ok()) << library.status();
  const auto text = ReadFile(kList);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto keys = ParseKernelList(*text, kList);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(*keys, (*library)->kernels().Keys());
}

// The library with another name in its list of what it needs.
std::string WithNeeded(const std::string& name, const std::string& other) {
  std::ifstream in(kLibrary, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  std::string text = bytes.str();
  // With the zero before it, so that it is the entry itself.
  const size_t at = text.find('\0' + name + '\0');
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(name.size(), other.size());
  text.replace(at + 1, other.size(), other);
  const std::string path = ::testing::TempDir() + "/lib_needs_" + other;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Entry, NamesWhatTheMachineLacks) {
  const std::string path = WithNeeded("libnccl.so.2", "libnccl.so.9");
  const auto library = GpuLibrary::OpenAt(path);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(ExitCodeOf(library.status()), ExitCode::kDevice);
  EXPECT_THAT(std::string(library.status().message()),
              AllOf(HasSubstr(path), HasSubstr("libnccl.so.9 is missing"),
                    HasSubstr("NCCL 2")));
}

}  // namespace
}  // namespace runtime
}  // namespace halftone
