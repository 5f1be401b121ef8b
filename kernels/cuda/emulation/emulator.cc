#include "kernels/cuda/emulation/emulator.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "graph/base/check.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace halftone {
namespace emulation {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;
constexpr size_t kStackBytes = 128 << 10;

enum class State { kReady, kAtBarrier, kAtShuffle, kDone };

// Where a fibre goes on. The compiler's own jumps save three words; those of
// the C library look for clean-ups on the way and took a quarter of the time.
using Place = void* [5];

// A context starts a fibre; after that jumps change fibres: they leave the
// signal mask alone, which takes a system call.
struct Fibre {
  ucontext_t context;
  Place place;
  std::unique_ptr<char[]> stack;
  State state = State::kDone;
  // What it brings to shuffles, by turns: nobody can be two of them ahead.
  uint64_t bits[2] = {0, 0};
  int turn = 0;
};

// One launch at a time in a process: tests of kernels have one thread.
struct Machine {
  std::vector<Fibre> fibres{kMaxThreads};
  Place scheduler;
  const std::function<void()>* thread = nullptr;
  int threads = 0, current = 0;
  Order order = Order::kAscending;
  uint32_t draw = 0;          // of kShuffled; the same in every launch
  std::vector<void*> shared;  // what the block has seen of it
};

Machine& TheMachine() {
  static Machine* const machine = new Machine;
  return *machine;
}

// 0 .. n - 1 in the machine's order, for a loop that makes n steps.
class Sequence {
 public:
  Sequence(Machine& m, int64_t n) : n_(n) {
    if (m.order == Order::kDescending) {
      next_ = step_ = n - 1;
    } else if (m.order == Order::kShuffled) {
      m.draw = m.draw * 1664525u + 1013904223u;
      next_ = m.draw % n;
      for (step_ = 1 + (m.draw >> 8) % n; std::gcd(step_, n) != 1;) ++step_;
    }
  }
  int64_t Next() {
    const int64_t now = next_;
    next_ += step_;
    while (next_ >= n_) next_ -= n_;
    return now;
  }

 private:
  int64_t n_, next_ = 0, step_ = 1;
};

// From a fibre to the scheduler, until the fibre is resumed.
void Wait(State state) {
  Machine& m = TheMachine();
  Fibre& self = m.fibres[m.current];
  self.state = state;
  if (__builtin_setjmp(self.place) == 0) __builtin_longjmp(m.scheduler, 1);
}

// A fibre runs its thread of every block.
void RunThreads() {
  for (;;) {
    (*TheMachine().thread)();
    Wait(State::kDone);
  }
}

// Does not return: the fibre jumps to the scheduler.
void Enter(Fibre& fibre) {
  if (fibre.stack != nullptr) __builtin_longjmp(fibre.place, 1);
  fibre.stack.reset(new char[kStackBytes]);
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack.get();
  fibre.context.uc_stack.ss_size = kStackBytes;
  fibre.context.uc_link = nullptr;
  makecontext(&fibre.context, RunThreads, 0);
  setcontext(&fibre.context);
}

// From the scheduler to a fibre, until it waits or is done.
void Resume(Machine& m, int i) {
  m.current = i;
  threadIdx.x = static_cast<unsigned>(i);
  if (__builtin_setjmp(m.scheduler) == 0) Enter(m.fibres[i]);
}

// Sets all fibres of [first, last) ready if all of them are in `state`.
bool Release(Machine& m, int first, int last, State state) {
  for (int i = first; i < last; ++i) {
    if (m.fibres[i].state != state) return false;
  }
  for (int i = first; i < last; ++i) m.fibres[i].state = State::kReady;
  return true;
}

// Runs the lanes of [first, last) until they are done or at a barrier: other
// warps may be as far ahead or behind.
void RunWarp(Machine& m, int first, int last) {
  do {
    Sequence lanes(m, last - first);
    for (int k = first; k < last; ++k) {
      const int i = first + static_cast<int>(lanes.Next());
      if (m.fibres[i].state == State::kReady) Resume(m, i);
    }
  } while (Release(m, first, last, State::kAtShuffle));
}

void RunBlock(Machine& m) {
  m.shared.clear();
  for (int i = 0; i < m.threads; ++i) {
    m.fibres[i].state = State::kReady;
    m.fibres[i].turn = 0;
  }
  do {
    Sequence warps(m, (m.threads + kWarp - 1) / kWarp);
    for (int k = 0; k < m.threads; k += kWarp) {
      const int first = static_cast<int>(warps.Next()) * kWarp;
      RunWarp(m, first, std::min(first + kWarp, m.threads));
    }
  } while (Release(m, 0, m.threads, State::kAtBarrier));
  for (int i = 0; i < m.threads; ++i) {
    HT_CHECK(m.fibres[i].state == State::kDone,
             "some threads miss a barrier, or some lanes a shuffle");
  }
}

}  // namespace

void Launch(int64_t blocks, int threads, const std::function<void()>& thread) {
  static std::mutex* const one_at_a_time = new std::mutex;
  const std::lock_guard<std::mutex> lock(*one_at_a_time);
  Machine& m = TheMachine();
  HT_CHECK(threads >= 1 && threads <= kMaxThreads, "threads of a block");
  m.thread = &thread;
  m.threads = threads;
  gridDim.x = static_cast<unsigned>(blocks);
  blockDim.x = static_cast<unsigned>(threads);
  m.draw = 0;
  Sequence order(m, blocks);
  for (int64_t k = 0; k < blocks; ++k) {
    blockIdx.x = static_cast<unsigned>(order.Next());
    RunBlock(m);
  }
}

void SetOrder(Order order) { TheMachine().order = order; }

void BlockBarrier() { Wait(State::kAtBarrier); }

void ForgetShared(void* data, size_t bytes) {
  std::vector<void*>& seen = TheMachine().shared;
  if (std::find(seen.begin(), seen.end(), data) != seen.end()) return;
  seen.push_back(data);
  memset(data, 0xff, bytes);
}

uint64_t Exchange(uint64_t bits, int lane) {
  Machine& m = TheMachine();
  const int self = m.current;
  const int turn = m.fibres[self].turn;
  m.fibres[self].bits[turn] = bits;
  m.fibres[self].turn = 1 - turn;
  Wait(State::kAtShuffle);
  return m.fibres[self / kWarp * kWarp + lane].bits[turn];
}

int Lane() { return TheMachine().current % kWarp; }

void Check(bool condition, const char* what) { HT_CHECK(condition, what); }

}  // namespace emulation
}  // namespace halftone
