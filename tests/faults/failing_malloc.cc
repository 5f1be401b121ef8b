// Preloaded into a program, lets one of its allocations fail:
//   HT_FAIL_ALLOCATION=N    the N-th, from 1 on, of all threads together
//   HT_FAIL_FROM=1          and all after it
//   HT_COUNT_ALLOCATIONS=F  none; their number goes to the file F at the end
// What oneDNN itself asks for does not fail: it writes its code through what it
// got without looking (2.6.3). That there is room is made sure of before it is
// asked (OnednnExpectRoom in kernels/cpu/onednn.cc).
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

extern "C" {

// The C library's own, which need no look-up.
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

}  // extern "C"

namespace {

std::atomic<long> count{0};

bool Fails(void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
      strstr(info.dli_fname, "libdnnl") != nullptr) {
    return false;
  }
  const long n = ++count;
  const char* at = getenv("HT_FAIL_ALLOCATION");
  if (at == nullptr) return false;
  const long wanted = atol(at);
  const bool fails =
      n == wanted || (n > wanted && getenv("HT_FAIL_FROM") != nullptr);
  if (fails) errno = ENOMEM;
  return fails;
}

__attribute__((destructor)) void Report() {
  const char* path = getenv("HT_COUNT_ALLOCATIONS");
  if (path == nullptr) return;
  char text[32];
  const int n = snprintf(text, sizeof(text), "%ld", count.load());
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return;
  (void)!write(fd, text, n);
  close(fd);
}

}  // namespace

extern "C" {

void* malloc(size_t n) {
  return Fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  return Fails(__builtin_return_address(0)) ? nullptr : __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  return Fails(__builtin_return_address(0)) ? nullptr : __libc_realloc(p, n);
}
void* memalign(size_t alignment, size_t n) {
  return Fails(__builtin_return_address(0)) ? nullptr
                                            : __libc_memalign(alignment, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
  return Fails(__builtin_return_address(0)) ? nullptr
                                            : __libc_memalign(alignment, n);
}
int posix_memalign(void** p, size_t alignment, size_t n) {
  if (Fails(__builtin_return_address(0))) return ENOMEM;
  *p = __libc_memalign(alignment, n);
  return *p == nullptr ? ENOMEM : 0;
}

}  // extern "C"
