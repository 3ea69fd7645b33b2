// Threads: the one file that knows OpenMP. One level, static schedule, serial bodies; a caller may end a kernel early.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "byzadmm/config.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define BYZ_HAVE_ATFORK 1
#endif

namespace byzadmm {

/// Below this many element operations a second thread costs more (a scheduler slice on a busy machine) than it saves.
constexpr index_t kSerialWork = index_t{1} << 20;

/// True in a process forked from one that may own an OpenMP pool: its threads do not exist here, so run serially.
inline bool& in_forked_child() {
  static bool forked = false;
  return forked;
}

inline void watch_forks() {
#if defined(_OPENMP) && defined(BYZ_HAVE_ATFORK)
  static const int registered = pthread_atfork(nullptr, nullptr, [] { in_forked_child() = true; });
  (void)registered;
#endif
}

inline int max_threads() {
#ifdef _OPENMP
  return in_forked_child() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

/// requested >= 1: that many; 0: one for small work (in element operations), otherwise all.
inline int resolve_threads(int requested, index_t work) {
#ifdef _OPENMP
  if (in_forked_child()) return 1;
  if (requested > 0) return requested;
  return work < kSerialWork ? 1 : omp_get_max_threads();
#else
  (void)requested;
  (void)work;
  return 1;
#endif
}

/// How the caller of a kernel ends it early: the exception that look() stores is thrown to the caller as soon as every
/// thread has finished its task. What the kernel was writing is incomplete then.
class Watch {
 public:
  virtual ~Watch() = default;

  /// Asked between tasks by every thread of a kernel; only the one that called the kernel looks.
  bool stopping(bool calling) {
    if (calling && --until_look_ <= 0 && !stopped_.load(std::memory_order_relaxed)) {
      until_look_ = look();
      if (error_) stopped_.store(true, std::memory_order_relaxed);
    }
    return stopped_.load(std::memory_order_relaxed);
  }

  /// Throw the exception if there is one; not from inside a team of threads.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 protected:
  /// Set error_ to end the kernel; returns how many tasks may pass before the next look.
  virtual int look() = 0;
  std::exception_ptr error_;

 private:
  int until_look_ = 0;
  std::atomic<bool> stopped_{false};
};

/// Whose kernel this thread is running: installed by the caller, handed to its team by for_tasks.
struct Watched {
  Watch* by = nullptr;
  bool calling = true, in_team = false;

  bool stopping() const { return by && by->stopping(calling); }
};

#ifdef BYZADMM_BESIDE
/// Kernels in a module beside another one have that one's, whoever of them calls whom; set before any of them runs.
inline Watched& (*watched_there)() = nullptr;
inline Watched& watched() { return watched_there(); }
#else
inline Watched& watched() {
  static thread_local Watched here;
  return here;
}
#endif

/// For a task that takes long, between its parts: true if it is to return at once, whatever it has written.
BYZ_NOINLINE inline bool stopping() { return watched().stopping(); }

/// The same between parts that are no tasks: throws if the kernel is to end.
BYZ_NOINLINE inline void check_stop() {
  if (const Watched here = watched(); !here.in_team && here.stopping()) here.by->rethrow();
}

/// body(task, slot) for task = 0 .. count-1; slot < threads names the scratch of the running thread.
template <class Body>
inline void for_tasks(index_t count, int threads, Body&& body) {
  const Watched here = watched();
#ifdef _OPENMP
  if (threads > 1 && count > 1) {
    const int team = static_cast<index_t>(threads) < count ? threads : static_cast<int>(count);
    using Clock = std::chrono::steady_clock;
    std::atomic<int> finished{0};
#pragma omp parallel num_threads(team)
    {
      const int slot = omp_get_thread_num();
      const bool looks = here.by && slot == 0;
      const auto begun = looks ? Clock::now() : Clock::time_point{};
      const Watched mine{here.by, slot == 0, true}, before = watched();
      watched() = mine;
#pragma omp for schedule(static) nowait
      for (index_t task = 0; task < count; ++task)
        if (!mine.stopping()) body(task, slot);
      watched() = before;
      finished.fetch_add(1, std::memory_order_release);
      // The others need about as long as the calling thread did; where that was long, it goes on looking meanwhile.
      const auto took = looks ? Clock::now() - begun : Clock::duration{};
      while (took > std::chrono::milliseconds(50) && finished.load(std::memory_order_acquire) < omp_get_num_threads()) {
        mine.stopping();
        std::this_thread::sleep_for(took / 512);
      }
    }
    if (here.by) here.by->rethrow();
    return;
  }
#endif
  (void)threads;
  for (index_t task = 0; task < count && !here.stopping(); ++task) body(task, 0);
  if (here.by && !here.in_team) here.by->rethrow();
}

/// body(lo, hi, slot) over [0, size) in tiles whose bounds depend on `tile` alone, never on the thread count.
template <class Body>
inline void for_tiles(index_t size, index_t tile, int threads, Body&& body) {
  const index_t count = (size + tile - 1) / tile;
  for_tasks(count, threads, [&](index_t t, int slot) {
    const index_t lo = t * tile;
    body(lo, lo + tile < size ? lo + tile : size, slot);
  });
}

}  // namespace byzadmm
