// What Byzantine workers send instead of their honest messages, written into caller-owned rows.
#pragma once

#include <cmath>
#include <cstring>

#include "byzadmm/choices.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/philox.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

namespace detail {

template <class T>
inline void fill(T* out, index_t d, T value) {
  for (index_t j = 0; j < d; ++j) out[j] = value;
}

/// Mean and population standard deviation of the regular rows, column by column, in double.
template <class T>
inline void alie_row(Rows<T> regular, double z, T* out) {
  const auto n = static_cast<double>(regular.n);
  for (index_t j = 0; j < regular.d; ++j) {
    if (j % 16 == 0) check_stop();
    double sum = 0, square = 0;
    for (index_t i = 0; i < regular.n; ++i) sum += static_cast<double>(regular.row[i][j]);
    const double mean = sum / n;
    for (index_t i = 0; i < regular.n; ++i) {
      const double gap = static_cast<double>(regular.row[i][j]) - mean;
      square += gap * gap;
    }
    out[j] = static_cast<T>(mean - z * std::sqrt(square / n));
  }
}

template <class T>
inline void inner_product_row(Rows<T> regular, double eps, T* out) {
  const auto n = static_cast<double>(regular.n);
  for (index_t j = 0; j < regular.d; ++j) {
    if (j % 16 == 0) check_stop();
    double sum = 0;
    for (index_t i = 0; i < regular.n; ++i) sum += static_cast<double>(regular.row[i][j]);
    out[j] = static_cast<T>(-eps * (sum / n));
  }
}

}  // namespace detail

/// Messages of index k of the Byzantine workers byzantine[0..q).  honest: (m, d), everybody's honest messages; regular:
/// those of the regular workers; x0: (d); out: (q, d), distinct from the others.  then(s) is called by the thread that
/// wrote row s, which it finds in its cache.
template <class T, class Then>
BYZ_NOINLINE void attack_messages(const Attack& attack, Rows<T> honest, Rows<T> regular, const index_t* byzantine,
                                  index_t q, const T* x0, std::int64_t k, std::uint64_t seed, T* out, int threads,
                                  Then&& then) {
  const index_t d = honest.d;
  const T sign = static_cast<T>(k % 2 == 0 ? 1 : -1);
  const auto value = static_cast<T>(attack.value);
  if ((attack.kind == AttackKind::alie || attack.kind == AttackKind::inner_product) && q > 0) {
    // Colluders agree on one vector.
    if (attack.kind == AttackKind::alie) detail::alie_row(regular, attack.value, out);
    else detail::inner_product_row(regular, attack.value, out);
    for (index_t s = 1; s < q; ++s) std::memcpy(out + s * d, out, static_cast<std::size_t>(d) * sizeof(T));
    for_tasks(q, threads, [&](index_t s, int) { then(s); });
    return;
  }
  for_tasks(q, threads, [&](index_t s, int) {
    T* to = out + s * d;
    const T* own = honest.row[byzantine[s]];
    switch (attack.kind) {
      case AttackKind::gaussian:
        philox_normal(Stream{seed, static_cast<std::uint64_t>(Purpose::attack),
                             static_cast<std::uint64_t>(byzantine[s]), static_cast<std::uint64_t>(k)},
                      value, to, d);
        if (attack.shift != 0) {  // adding zero would change the sign of a zero
          const auto shift = static_cast<T>(attack.shift);
          for (index_t j = 0; j < d; ++j) to[j] += shift;
        }
        break;
      case AttackKind::sign_flip:
        for (index_t j = 0; j < d; ++j) to[j] = value * own[j];
        break;
      case AttackKind::small_value: {
        const double spread = static_cast<double>(k) * static_cast<double>(k + 1);
        const auto shift = static_cast<T>(attack.value / (spread > 1 ? spread : 1));
        for (index_t j = 0; j < d; ++j) to[j] = x0[j] - shift;
        break;
      }
      case AttackKind::large_value:
        for (index_t j = 0; j < d; ++j) to[j] = x0[j] - value * sign;
        break;
      case AttackKind::dual_oscillation: detail::fill(to, d, value * sign); break;
      case AttackKind::constant: detail::fill(to, d, value); break;
      case AttackKind::duplicate:
        std::memcpy(to, honest.row[attack.worker], static_cast<std::size_t>(d) * sizeof(T));
        break;
      default: std::memcpy(to, own, static_cast<std::size_t>(d) * sizeof(T)); break;
    }
    then(s);
  });
}

template <class T>
void attack_messages(const Attack& attack, Rows<T> honest, Rows<T> regular, const index_t* byzantine, index_t q,
                     const T* x0, std::int64_t k, std::uint64_t seed, T* out, int threads) {
  attack_messages(attack, honest, regular, byzantine, q, x0, k, seed, out, threads, [](index_t) {});
}

}  // namespace byzadmm
