//===- ProcessEnd.cpp - Ends a process that hangs on its way out ----------===//
//
// Process groups are destroyed when Python frees its modules. Their threads may
// wait there for ranks that have gone. Exit handlers run before, undisturbed.
//
//===----------------------------------------------------------------------===//

#include <torch/library.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <dlfcn.h>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace neuroshard::runtime {
namespace {

using namespace std::chrono_literals;

using IsFinalizing = int (*)();

/// Python's function that says whether exit handlers have run and the
/// interpreter is being freed. Python before 3.13 has it under another name.
IsFinalizing findIsFinalizing() {
  for (const char *name : {"Py_IsFinalizing", "_Py_IsFinalizing"})
    if (void *found = dlsym(RTLD_DEFAULT, name))
      return reinterpret_cast<IsFinalizing>(found);
  return nullptr;
}

using Seconds = std::chrono::duration<double>;

/// CPU time of this process.
Seconds cpuTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

/// Ends the process when it has done nothing for so long. What works, however
/// slowly, does not wait for other ranks.
void endAfterFinalizing(IsFinalizing isFinalizing, Seconds limit) {
  constexpr auto kSlice = 100ms; // counted: the process may be stopped
  constexpr auto kIdle = 2ms;    // this thread itself takes less
  Seconds hung{}, before = cpuTime();
  while (hung < limit) {
    std::this_thread::sleep_for(kSlice);
    Seconds now = cpuTime();
    bool works = !isFinalizing() || now - before > kIdle;
    hung = works ? Seconds{} : Seconds(hung + kSlice);
    before = now;
  }
  std::fputs("neuroshard: this process has failed and still waits for other "
             "ranks; it ends now\n",
             stderr);
  _exit(1);
}

/// For a process that ends because of an error: ends it if freeing the
/// interpreter hangs for so long.
void endProcessAfterExit(double seconds) {
  static std::once_flag once;
  std::call_once(once, [&] {
    if (IsFinalizing isFinalizing = findIsFinalizing())
      std::thread(endAfterFinalizing, isFinalizing, Seconds(seconds)).detach();
  });
}

} // namespace
} // namespace neuroshard::runtime

TORCH_LIBRARY_FRAGMENT(neuroshard, m) {
  m.def("end_process_after_exit(float seconds) -> ()",
        &neuroshard::runtime::endProcessAfterExit);
}
