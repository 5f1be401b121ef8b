// What every device must do, as a parameterised test. A device's own test says
//   INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance, ::testing::Values(...));
#ifndef HALFTONE_RUNTIME_DEVICE_DEVICE_CONFORMANCE_H_
#define HALFTONE_RUNTIME_DEVICE_DEVICE_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/device/device.h"

namespace halftone {
namespace runtime {

struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
  bool has_graphs = false;

  friend void PrintTo(const DeviceCase& value, std::ostream* out) {
    *out << value.name;
  }
};

class DeviceConformance : public ::testing::TestWithParam<DeviceCase> {
 protected:
  DeviceConformance();

  std::unique_ptr<Memory> Allocate(int64_t bytes);
  std::unique_ptr<Stream> MakeStream(const char* name);
  std::unique_ptr<Event> MakeEvent();
  // To device memory and back, waited for.
  void Upload(const Memory& to, const std::vector<uint8_t>& bytes);
  std::vector<uint8_t> Download(const Memory& from);

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DEVICE_DEVICE_CONFORMANCE_H_
