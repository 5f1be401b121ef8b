// A library that knows nothing of us.
extern "C" int Stranger() { return 1; }
