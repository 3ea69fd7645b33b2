// The interpreter lock, released while a kernel runs: signals, cancelled threads, and the end of the interpreter.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "pybind.hpp"
#include "table.hpp"

namespace byzadmm::bindings {

/// The kernels in use; module.cpp sets it before anything can be called.
inline const Table*& table_in_use() {
  static const Table* here = nullptr;
  return here;
}
inline const Table& table() { return *table_in_use(); }

template <class T>
const Kernels<T>& kernels() {
  return std::get<Kernels<T>>(table().of);
}

/// Ends the kernels of other threads: those that run, or start, inside `with cancellation:` raise InterruptedError once
/// it is cancelled.
class Cancellation {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  /// The one that the calling thread is inside of.
  static Cancellation*& current() {
    static thread_local Cancellation* here = nullptr;
    return here;
  }

 private:
  std::atomic<bool> cancelled_{false};
};

/// Identifier of the thread in which Python runs signal handlers.
inline unsigned long& main_thread() {
  static unsigned long ident = 0;
  return ident;
}

/// While it lives the lock is released, and a kernel that runs ends early for a signal whose handler raises (in the
/// main thread; Ctrl-C) or a cancellation (in others). Pointers to arrays must have been taken before.
class Unlocked final : private Watch {
 public:
  Unlocked()
      : watched_(table().watched()),
        outside_(watched_),
        cancellation_(Cancellation::current()),
        state_(PyEval_SaveThread()) {
    // In a forked child any thread may have become the main one; Python knows.
    signals_ = PyThread_get_thread_ident() == main_thread() || table().in_forked_child();
    if (signals_ || cancellation_) watched_ = {this, true, false};
  }
  ~Unlocked() override {
    watched_ = outside_;
    lock();
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  /// f() with the lock held, in the thread that called the kernel, between parts of it.
  template <class F>
  void locked(F&& f) {
    lock();
    try {
      f();
    } catch (...) {
      state_ = PyEval_SaveThread();
      throw;
    }
    state_ = PyEval_SaveThread();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kBetweenSignals = std::chrono::milliseconds(50);

  void lock() {
    // Until Python 3.13 a daemon thread that asks for the lock of an interpreter that is ending is unwound by
    // pthread_exit, and the first destructor on the way aborts the process. It sleeps here until the process has ended,
    // which is what later versions do.
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }

  int look() override {
    const auto now = Clock::now();
    if (last_look_ == Clock::time_point{}) next_signals_ = now + kBetweenSignals;
    const bool quick = now - last_look_ < std::chrono::milliseconds(1);
    last_look_ = now;
    if (signals_ && now >= next_signals_) {
      lock();
      if (PyErr_CheckSignals() != 0) error_ = std::make_exception_ptr(py::error_already_set());
      state_ = PyEval_SaveThread();
      next_signals_ = Clock::now() + kBetweenSignals;
    } else if (cancellation_ && cancellation_->cancelled()) {
      lock();
      PyErr_SetString(PyExc_InterruptedError, "cancelled");
      error_ = std::make_exception_ptr(py::error_already_set());
      state_ = PyEval_SaveThread();
    }
    return quick ? 16 : 1;  // small tasks should not pay for the clock
  }

  Watched& watched_;
  Watched outside_;
  Cancellation* cancellation_;
  PyThreadState* state_;
  bool signals_ = false;
  Clock::time_point last_look_, next_signals_;
};

}  // namespace byzadmm::bindings
