// For libraries that are preloaded into a program: the functions behind theirs.
#ifndef HALFTONE_TESTS_FAULTS_NEXT_CALL_H_
#define HALFTONE_TESTS_FAULTS_NEXT_CALL_H_

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>

// Calls the function of that name behind this one.
template <typename... Args>
auto Next(const char* name, Args... args) {
  using Function = long (*)(Args...);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(args...);
}

// Of open and openat: `mode`, of the arguments behind `flags`.
#define MODE_OF(flags)                                             \
  va_list list;                                                    \
  va_start(list, flags);                                           \
  const int mode = (flags & O_CREAT) != 0 ? va_arg(list, int) : 0; \
  va_end(list)

#endif  // HALFTONE_TESTS_FAULTS_NEXT_CALL_H_
