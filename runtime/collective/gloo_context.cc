#include "runtime/collective/gloo_context.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <future>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/transport/tcp/context.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/transport/tcp/loop.h"
#include "gloo/transport/tcp/pair.h"

namespace halftone {
namespace runtime {
namespace {

namespace tcp = gloo::transport::tcp;

// A pair that is connected from the start. Gloo's own constructor listens;
// nobody is accepted there, because the thread that would do it is the one
// that makes the pair (see OnLoop).
class ConnectedPair : public tcp::Pair {
 public:
  ConnectedPair(tcp::Context* context, tcp::Device* device, int peer,
                std::chrono::milliseconds timeout, Socket socket)
      : tcp::Pair(context, device, peer, timeout) {
    std::lock_guard<std::mutex> lock(m_);
    device_->unregisterDescriptor(fd_, this);
    ::close(fd_);
    fd_ = socket.Release();
    try {
      handleConnected();
    } catch (...) {
      ::close(fd_);
      fd_ = -1;
      state_ = CLOSED;  // nothing left for the destructor
      throw;
    }
  }
};

class ConnectedContext : public tcp::Context {
 public:
  using tcp::Context::Context;

  void Adopt(int peer, Socket socket) {
    pairs_[peer] = std::make_unique<ConnectedPair>(
        this, device_.get(), peer, getTimeout(), std::move(socket));
  }
};

class MeshContext : public gloo::Context {
 public:
  MeshContext(int rank, int size, std::shared_ptr<tcp::Device> device,
              std::shared_ptr<ConnectedContext> transport)
      : gloo::Context(rank, size) {
    device_ = std::move(device);
    transportContext_ = std::move(transport);
    setTimeout(transportContext_->getTimeout());
  }
};

// Calls a function once on the thread of Gloo's event loop.
class OnLoop : public tcp::Handler {
 public:
  explicit OnLoop(std::function<void()> call) : call_(std::move(call)) {}

  // Throws what the call throws.
  void Run(tcp::Device& device) {
    const Socket event(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.open()) throw gloo::IoException("eventfd");
    device.registerDescriptor(event.fd(), EPOLLIN, this);
    std::future<void> done = done_.get_future();
    done.wait();
    // Returns when the loop is behind handleEvents.
    device.unregisterDescriptor(event.fd(), this);
    done.get();
  }

  void handleEvents(int) override {
    if (called_) return;  // the event stays
    called_ = true;
    try {
      call_();
      done_.set_value();
    } catch (...) {
      done_.set_exception(std::current_exception());
    }
  }

 private:
  const std::function<void()> call_;
  bool called_ = false;
  std::promise<void> done_;
};

}  // namespace

std::shared_ptr<gloo::Context> MakeGlooContext(
    const std::string& address, int rank, std::vector<Socket> peers,
    std::chrono::milliseconds timeout) {
  const int size = static_cast<int>(peers.size());
  auto device = std::dynamic_pointer_cast<tcp::Device>(
      tcp::CreateDevice(tcp::attr(address.c_str())));
  auto transport = std::make_shared<ConnectedContext>(device, rank, size);
  transport->setTimeout(timeout);
  OnLoop([&] {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) transport->Adopt(peer, std::move(peers[peer]));
    }
  }).Run(*device);
  return std::make_shared<MeshContext>(rank, size, device, transport);
}

}  // namespace runtime
}  // namespace halftone
