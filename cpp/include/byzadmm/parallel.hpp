// Threads: the one file that knows OpenMP. One level, static schedule, serial bodies.
#pragma once

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

/// body(task, slot) for task = 0 .. count-1; slot < threads names the scratch of the running thread.
template <class Body>
inline void for_tasks(index_t count, int threads, Body&& body) {
#ifdef _OPENMP
  if (threads > 1 && count > 1) {
    const int team = static_cast<index_t>(threads) < count ? threads : static_cast<int>(count);
#pragma omp parallel for schedule(static) num_threads(team)
    for (index_t task = 0; task < count; ++task) body(task, omp_get_thread_num());
    return;
  }
#endif
  (void)threads;
  for (index_t task = 0; task < count; ++task) body(task, 0);
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
