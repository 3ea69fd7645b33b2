// The fused loops: many iterations of ADMM, RSA or SGD under attack in one call. No arithmetic of their own: each line
// is a kernel of another header, and the step-by-step path in Python calls the same ones, so both give the same bits.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "byzadmm/admm.hpp"
#include "byzadmm/attacks.hpp"
#include "byzadmm/geometric_median.hpp"
#include "byzadmm/losses.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/median.hpp"
#include "byzadmm/rsa.hpp"
#include "byzadmm/sgd.hpp"

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

/// Who takes part, who lies, and whom the master has thrown out (`eliminated_i` = iteration, or -1).
template <class T>
struct Cast {
  index_t m, d;
  std::vector<index_t> byzantine;  // worker numbers, ascending
  Attack attack;
  std::uint64_t seed;
  std::int64_t* eliminated;  // (m)
  int threads;

  index_t q() const { return static_cast<index_t>(byzantine.size()); }

  /// slot_of()[i]: where worker i stands among the Byzantine ones, or -1.
  std::vector<index_t> slot_of() const {
    std::vector<index_t> slot(static_cast<std::size_t>(m), -1);
    for (std::size_t s = 0; s < byzantine.size(); ++s)
      slot[static_cast<std::size_t>(byzantine[s])] = static_cast<index_t>(s);
    return slot;
  }

  /// Rows of an (m, d) array: all of them, or the regular ones.
  std::vector<const T*> rows(const T* data, bool regular_only) const {
    const auto slot = slot_of();
    std::vector<const T*> row;
    for (index_t i = 0; i < m; ++i)
      if (!regular_only || slot[static_cast<std::size_t>(i)] < 0) row.push_back(data + i * d);
    return row;
  }

  /// Messages of index k of the Byzantine workers, from everybody's honest ones.
  void lie(const T* honest, const T* x0, std::int64_t k, T* out) const {
    if (byzantine.empty()) return;
    const auto all = rows(honest, false), regular = rows(honest, true);
    attack_messages<T>(attack, {all.data(), m, d}, {regular.data(), static_cast<index_t>(regular.size()), d},
                       byzantine.data(), q(), x0, k, seed, out, threads);
  }

  /// Mark the senders of unacceptable messages.  message(i): worker i's, or nullptr if it sends none.
  template <class Message>
  void screen(std::int64_t k, T bound, Message&& message) const {
    for_tasks(m, threads, [&](index_t i, int) {
      const T* sent = eliminated[i] < 0 ? message(i) : nullptr;
      if (sent && !acceptable(sent, d, bound)) eliminated[i] = k;
    });
  }
};

/// ADMM: x0 (d); x, eta, eta_prev (m, d) honest; sent, sent_prev, u (q, d): what Byzantine workers sent and claim.
template <class T>
struct AdmmState {
  T *x0, *x, *eta, *eta_prev, *sent, *sent_prev, *u;
};

template <class T>
struct AdmmParameters {
  double lam, beta, rho;
};

/// Iterations first .. first+count-1 with step sizes alpha0[t], alpha[t].  Each: eqx0-update-1 at the master, then
/// eqxi-update and eq11 at every worker, then eq11c for the lies; the message of iteration k has index k + 1.
template <class T>
void run_admm(Loss<T>& loss, AdmmState<T> s, const AdmmParameters<T>& p, const Cast<T>& cast, const double* alpha0,
              const double* alpha, std::int64_t first, index_t count) {
  const index_t m = cast.m, d = cast.d, q = cast.q();
  const auto lam = static_cast<T>(p.lam), beta = static_cast<T>(p.beta);
  const auto slot_of = cast.slot_of();
  std::vector<T> gradient(static_cast<std::size_t>(cast.threads * d));
  std::vector<char> sound(
      static_cast<std::size_t>(m));  // whose dual the master would accept; not bool: threads write it
  std::vector<const T*> now, before;
  const T *eta_home = s.eta, *sent_home = s.sent;
  loss.reserve(cast.threads);
  for (index_t t = 0; t < count; ++t) {
    const std::int64_t k = first + t;
    now.clear();
    before.clear();
    for (index_t i = 0; i < m; ++i) {
      if (cast.eliminated[i] >= 0) continue;
      const index_t slot = slot_of[static_cast<std::size_t>(i)];
      now.push_back(slot < 0 ? s.eta + i * d : s.sent + slot * d);
      before.push_back(slot < 0 ? s.eta_prev + i * d : s.sent_prev + slot * d);
    }
    const auto heard = static_cast<index_t>(now.size());
    admm_master_step<T>(s.x0, {now.data(), heard, d}, {before.data(), heard, d}, alpha0[t], p.rho, s.x0, cast.threads);
    for_tasks(m, cast.threads, [&](index_t i, int slot) {
      T *g = gradient.data() + slot * d, *x = s.x + i * d;
      loss.gradient(i, x, k, g, slot);
      sound[static_cast<std::size_t>(i)] = admm_worker_and_dual_step<T>(x, g, s.eta + i * d, s.eta_prev + i * d, s.x0,
                                                                        static_cast<T>(alpha[t]), beta, lam, d);
    });
    std::swap(s.eta, s.eta_prev);
    cast.lie(s.x, s.x0, k + 1, s.u);
    if (cast.attack.kind == AttackKind::dual_oscillation) std::copy(s.u, s.u + q * d, s.sent_prev);
    else admm_dual_step<T>(s.sent, s.u, s.x0, beta, lam, s.sent_prev, q, d, cast.threads);
    std::swap(s.sent, s.sent_prev);
    for (index_t i = 0; i < m; ++i) {
      const index_t slot = slot_of[static_cast<std::size_t>(i)];
      const bool fine = slot < 0 ? sound[static_cast<std::size_t>(i)] != 0 : acceptable(s.sent + slot * d, d, lam);
      if (!fine && cast.eliminated[i] < 0) cast.eliminated[i] = k;
    }
  }
  // The caller knows the buffers by their first roles.
  if (s.eta != eta_home) std::swap_ranges(s.eta, s.eta + m * d, s.eta_prev);
  if (s.sent != sent_home) std::swap_ranges(s.sent, s.sent + q * d, s.sent_prev);
}

/// RSA: x0 (d); x (m, d); lies (q, d); next (d), scratch.
template <class T>
struct RsaState {
  T *x0, *x, *lies, *next;
};

/// eq:rsa-update at the master and at every worker, both from x_i^k and x0^k; the message of iteration k is x_i^k.
template <class T>
void run_rsa(Loss<T>& loss, RsaState<T> s, double lam, double rho, const Cast<T>& cast, const double* alpha0,
             const double* alpha, std::int64_t first, index_t count) {
  const index_t m = cast.m, d = cast.d;
  const auto slot_of = cast.slot_of();
  std::vector<T> gradient(static_cast<std::size_t>(cast.threads * d));
  std::vector<const T*> heard;
  loss.reserve(cast.threads);
  const auto message = [&](index_t i) -> const T* {
    const index_t slot = slot_of[static_cast<std::size_t>(i)];
    return slot < 0 ? s.x + i * d : s.lies + slot * d;
  };
  for (index_t t = 0; t < count; ++t) {
    const std::int64_t k = first + t;
    cast.lie(s.x, s.x0, k, s.lies);
    cast.screen(k, std::numeric_limits<T>::max(), message);
    heard.clear();
    for (index_t i = 0; i < m; ++i)
      if (cast.eliminated[i] < 0) heard.push_back(message(i));
    rsa_master_step<T>(s.x0, {heard.data(), static_cast<index_t>(heard.size()), d}, alpha0[t], lam, rho, s.next,
                       cast.threads);
    for_tasks(m, cast.threads, [&](index_t i, int slot) {
      T *g = gradient.data() + slot * d, *x = s.x + i * d;
      loss.gradient(i, x, k, g, slot);
      rsa_worker_step<T>(x, g, s.x0, static_cast<T>(alpha[t]), static_cast<T>(lam), x, 1, d, 1);
    });
    std::copy(s.next, s.next + d, s.x0);
  }
}

enum class Rule : int { mean, median, trimmed_mean, geometric_median };

struct RuleSpec {
  Rule rule;
  index_t f;
  double tol;
  int max_iter;
};

/// One direction from the gradients that were heard (all finite). Thrown-out rows count towards f.
template <class T>
void apply_rule(const RuleSpec& spec, Rows<T> x, index_t thrown_out, double* share, T* out, int threads) {
  switch (spec.rule) {
    case Rule::mean: mean<T>(x, nullptr, out, threads); break;
    case Rule::median: median<T>(x, Even::mid, out, threads); break;
    case Rule::trimmed_mean:
      trimmed_mean<T>(x, std::min(std::max<index_t>(spec.f - thrown_out, 0), (x.n - 1) / 2), out, threads);
      break;
    case Rule::geometric_median: geometric_median<T>(x, nullptr, spec.tol, spec.max_iter, out, share, threads); break;
  }
}

/// SGD: x0 (d); g (m, d) gradients at x0; momentum (m, d) or nullptr; lies (q, d); direction (d).
template <class T>
struct SgdState {
  T *x0, *g, *momentum, *lies, *direction;
};

/// x0 <- x0 - alpha (rule(messages) + rho x0), the messages being gradients, or what momentum_step makes of them.  With
/// `ideal` the Byzantine workers take no part.
template <class T>
void run_sgd(Loss<T>& loss, SgdState<T> s, const RuleSpec& rule, double rho, double beta, bool ideal,
             const Cast<T>& cast, const double* alpha, std::int64_t first, index_t count) {
  const index_t m = cast.m, d = cast.d;
  const auto slot_of = cast.slot_of();
  std::vector<const T*> heard;
  std::vector<double> share(static_cast<std::size_t>(m));
  loss.reserve(cast.threads);
  T* honest = s.momentum ? s.momentum : s.g;
  const auto message = [&](index_t i) -> const T* {
    const index_t slot = slot_of[static_cast<std::size_t>(i)];
    if (slot < 0) return honest + i * d;
    return ideal ? nullptr : s.lies + slot * d;
  };
  for (index_t t = 0; t < count; ++t) {
    const std::int64_t k = first + t;
    for_tasks(m, cast.threads, [&](index_t i, int slot) {
      if (ideal && slot_of[static_cast<std::size_t>(i)] >= 0) return;
      loss.gradient(i, s.x0, k, s.g + i * d, slot);
      if (s.momentum) momentum_step<T>(s.momentum + i * d, s.g + i * d, static_cast<T>(beta), d, 1);
    });
    if (!ideal) cast.lie(honest, s.x0, k, s.lies);
    cast.screen(k, std::numeric_limits<T>::max(), message);
    heard.clear();
    index_t thrown_out = 0;
    for (index_t i = 0; i < m; ++i) {
      if (cast.eliminated[i] >= 0) ++thrown_out;
      else if (const T* row = message(i)) heard.push_back(row);
    }
    if (heard.empty()) std::fill(s.direction, s.direction + d, T(0));
    else
      apply_rule<T>(rule, {heard.data(), static_cast<index_t>(heard.size()), d}, thrown_out, share.data(), s.direction,
                    cast.threads);
    sgd_step<T>(s.x0, s.direction, static_cast<T>(alpha[t]), static_cast<T>(rho), s.x0, d, cast.threads);
  }
}

}  // namespace byzadmm
