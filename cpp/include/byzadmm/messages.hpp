// Messages on their way to the master: which it accepts, and the numbers of those that came in envelopes.
#pragma once

#include <cstring>
#include <limits>
#include <vector>

#include "byzadmm/parallel.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

/// What the master accepts: every element finite, and within [-bound, bound] where a bound is given (the dual's
/// lambda).
template <class T>
BYZ_NOINLINE bool acceptable(const T* message, index_t d, T bound) {
  int odd = 0;
  for (index_t j = 0; j < d; ++j) odd |= !(message[j] <= bound && message[j] >= -bound);
  return odd == 0;
}

/// The same on the way into `out`, so that memory is passed over once.
template <class T>
BYZ_NOINLINE bool copy_acceptable(const T* message, index_t d, T bound, T* out) {
  int odd = 0;
#pragma GCC ivdep
  for (index_t j = 0; j < d; ++j) {
    odd |= !(message[j] <= bound && message[j] >= -bound);
    out[j] = message[j];
  }
  return odd == 0;
}

/// The largest number that an acceptable message holds; bound <= 0 asks for finite ones only.
template <class T>
T largest_acceptable(double bound) {
  return bound > 0 ? static_cast<T>(bound) : std::numeric_limits<T>::max();
}

/// good_i = is row i acceptable?
template <class T>
void acceptable_rows(Rows<T> messages, double bound, bool* good) {
  const T limit = largest_acceptable<T>(bound);
  for_tasks(messages.n, 1, [&](index_t i, int) { good[i] = acceptable<T>(messages.row[i], messages.d, limit); });
}

/// The numbers of every envelope that is exactly this go to their rows of out (m, d), whose `present` and, if they are
/// acceptable, `good` become true.  fits_e: was envelope e exactly this?
template <class T>
void take_messages(const std::vector<Envelope>& envelopes, index_t header_bytes, double bound, index_t m, index_t d,
                   T* out, bool* present, bool* good, bool* fits) {
  struct Message {
    const T* from;
    index_t row;
  };
  std::vector<Message> messages;
  for (std::size_t e = 0; e < envelopes.size(); ++e) {
    const Envelope& one = envelopes[e];
    const char* numbers = one.bytes + header_bytes;
    fits[e] = one.first >= 0 && one.rows >= 0 && one.rows <= m && one.first <= m - one.rows &&
              static_cast<index_t>(one.header.size()) <= header_bytes &&
              one.count == header_bytes + one.rows * d * static_cast<index_t>(sizeof(T)) &&
              reinterpret_cast<std::uintptr_t>(numbers) % alignof(T) == 0 &&
              std::memcmp(one.bytes, one.header.data(), one.header.size()) == 0;
    for (index_t i = 0; fits[e] && i < one.rows; ++i)
      messages.push_back({reinterpret_cast<const T*>(numbers) + i * d, one.first + i});
  }
  const T limit = largest_acceptable<T>(bound);
  for_tasks(static_cast<index_t>(messages.size()), 1, [&](index_t i, int) {
    const Message& one = messages[static_cast<std::size_t>(i)];
    good[one.row] = copy_acceptable<T>(one.from, d, limit, out + one.row * d);
    present[one.row] = true;
  });
}

}  // namespace byzadmm
