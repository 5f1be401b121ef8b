// What the thread sanitizer reports although it is in order: the system's
// libraries are not built for it, so it misses what they do among themselves.
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_suppressions() {
  return
      // libgloo: atomic counters by which a buffer's destructor waits for its
      // last user.
      "race:gloo::transport::tcp::UnboundBuffer::~UnboundBuffer\n"
      "race:std::default_delete<gloo::transport::UnboundBuffer>\n"
      // libdnnl: the lock of its cache of primitives, which ranks as threads
      // fill at the same time.
      "race:dnnl::memory::desc::desc\n"
      "race:libdnnl.so\n"
      // libabsl: a static of its own, made at the first error of a socket.
      "race:libabsl_strerror.so\n";
}
#endif
