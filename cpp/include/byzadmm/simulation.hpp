// The fused loops: many iterations of ADMM, RSA or SGD under attack in one call. No arithmetic of their own: each line
// is a kernel of another header, and the step-by-step path in Python calls the same ones, so both give the same bits.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "byzadmm/admm.hpp"
#include "byzadmm/attacks.hpp"
#include "byzadmm/choices.hpp"
#include "byzadmm/losses.hpp"
#include "byzadmm/messages.hpp"
#include "byzadmm/rsa.hpp"
#include "byzadmm/sgd.hpp"

namespace byzadmm {

namespace detail {

/// Rows of an (m, d) array: all of them, or the regular ones.
template <class T>
std::vector<const T*> rows_of(const Participants& who, const T* data, bool regular_only) {
  const auto slot = who.slot_of();
  std::vector<const T*> row;
  for (index_t i = 0; i < who.m; ++i)
    if (!regular_only || slot[static_cast<std::size_t>(i)] < 0) row.push_back(data + i * who.d);
  return row;
}

/// Messages of index k that the Byzantine workers forge, from everybody's honest ones; then(slot) follows each.
template <class T, class Then>
void forge(const Participants& who, const T* honest, const T* x0, std::int64_t k, T* out, Then&& then) {
  if (who.byzantine.empty()) return;
  const auto all = rows_of(who, honest, false), regular = rows_of(who, honest, true);
  attack_messages<T>(who.attack, {all.data(), who.m, who.d},
                     {regular.data(), static_cast<index_t>(regular.size()), who.d}, who.byzantine.data(), who.q(), x0,
                     k, who.seed, out, who.threads, then);
}

template <class T>
void forge(const Participants& who, const T* honest, const T* x0, std::int64_t k, T* out) {
  forge(who, honest, x0, k, out, [](index_t) {});
}

/// Eliminate the senders of unacceptable messages.  message(i): worker i's, or nullptr if it sends none.
template <class T, class Message>
void screen(const Participants& who, std::int64_t k, Message&& message) {
  for_tasks(who.m, who.threads, [&](index_t i, int) {
    const T* sent = who.eliminated[i] < 0 ? message(i) : nullptr;
    if (sent && !acceptable(sent, who.d, std::numeric_limits<T>::max())) who.eliminated[i] = k;
  });
}

}  // namespace detail

/// ADMM. Each iteration: eqx0-update-1 at the master, then eqxi-update and eq11 at every worker, then eq11c for the
/// forged models; the message of iteration k has index k + 1.
template <class T>
void run_admm(Loss<T>& loss, AdmmState<T> s, const AdmmParameters& p, const Participants& who,
              const Schedule& schedule) {
  const index_t m = who.m, d = who.d, q = who.q();
  const auto lam = static_cast<T>(p.lam), beta = static_cast<T>(p.beta);
  const auto slot_of = who.slot_of();
  std::vector<T> gradient(static_cast<std::size_t>(who.threads * d));
  // Whose dual the master would accept; not bool, as threads write it.
  std::vector<char> sound(static_cast<std::size_t>(m)), sound_forged(static_cast<std::size_t>(q));
  std::vector<const T*> now, beside;
  loss.reserve(who.threads);
  for (index_t t = 0; t < schedule.count; ++t) {
    const std::int64_t k = schedule.first + t;
    const bool first = t == 0, last = t + 1 == schedule.count;
    now.clear();
    beside.clear();
    for (index_t i = 0; i < m; ++i) {
      if (who.eliminated[i] >= 0) continue;
      const index_t slot = slot_of[static_cast<std::size_t>(i)];
      now.push_back(slot < 0 ? s.eta + i * d : s.sent + slot * d);
      beside.push_back(slot < 0 ? s.eta_prev + i * d : s.sent_prev + slot * d);
    }
    const auto heard = static_cast<index_t>(now.size());
    const Rows<T> kept{beside.data(), heard, d};
    if (first) admm_master_step<T>(s.x0, {now.data(), heard, d}, kept, schedule.master[t], p.rho, s.x0, who.threads);
    else admm_master_step_of_ahead<T>(s.x0, kept, schedule.master[t], p.rho, s.x0, who.threads);
    for_tasks(m, who.threads, [&](index_t i, int slot) {
      T *g = gradient.data() + slot * d, *x = s.x + i * d;
      loss.gradient(i, x, k, g, slot);
      sound[static_cast<std::size_t>(i)] =
          admm_worker_and_dual_step<T>(x, g, {s.eta + i * d, s.eta_prev + i * d, first, last}, s.x0,
                                       static_cast<T>(schedule.worker[t]), beta, lam, d);
    });
    detail::forge(who, s.x, s.x0, k + 1, s.u, [&](index_t slot) {
      const T* u = s.u + slot * d;
      const DualInLoop<T> dual{s.sent + slot * d, s.sent_prev + slot * d, first, last};
      sound_forged[static_cast<std::size_t>(slot)] = who.attack.kind == AttackKind::dual_oscillation
                                                         ? admm_forged_dual<T>(u, dual, lam, d)
                                                         : admm_forged_dual_step<T>(u, dual, s.x0, beta, lam, d);
    });
    for (index_t i = 0; i < m; ++i) {
      const index_t slot = slot_of[static_cast<std::size_t>(i)];
      const char fine = slot < 0 ? sound[static_cast<std::size_t>(i)] : sound_forged[static_cast<std::size_t>(slot)];
      if (fine == 0 && who.eliminated[i] < 0) who.eliminated[i] = k;
    }
  }
}

/// RSA: eq:rsa-update at the master and at every worker, both from x_i^k and x0^k; the message of iteration k is x_i^k.
template <class T>
void run_rsa(Loss<T>& loss, RsaState<T> s, const RsaParameters& p, const Participants& who, const Schedule& schedule) {
  const index_t m = who.m, d = who.d;
  const auto slot_of = who.slot_of();
  std::vector<T> gradient(static_cast<std::size_t>(who.threads * d)), next(static_cast<std::size_t>(d));
  std::vector<const T*> heard;
  loss.reserve(who.threads);
  const auto message = [&](index_t i) -> const T* {
    const index_t slot = slot_of[static_cast<std::size_t>(i)];
    return slot < 0 ? s.x + i * d : s.forged + slot * d;
  };
  for (index_t t = 0; t < schedule.count; ++t) {
    const std::int64_t k = schedule.first + t;
    detail::forge(who, s.x, s.x0, k, s.forged);
    detail::screen<T>(who, k, message);
    heard.clear();
    for (index_t i = 0; i < m; ++i)
      if (who.eliminated[i] < 0) heard.push_back(message(i));
    rsa_master_step<T>(s.x0, {heard.data(), static_cast<index_t>(heard.size()), d}, schedule.master[t], p.lam, p.rho,
                       next.data(), who.threads);
    for_tasks(m, who.threads, [&](index_t i, int slot) {
      T *g = gradient.data() + slot * d, *x = s.x + i * d;
      loss.gradient(i, x, k, g, slot);
      rsa_worker_step<T>(x, g, s.x0, static_cast<T>(schedule.worker[t]), static_cast<T>(p.lam), x, 1, d, 1);
    });
    std::copy(next.begin(), next.end(), s.x0);
  }
}

/// SGD: x0 <- x0 - alpha (rule(messages) + rho x0), the messages being gradients, or what momentum_step makes of them.
/// alpha is the master's step.  rule(rows, their senders, k, direction): one direction (d) from the messages of those
/// that the master has not eliminated, all finite.
template <class T>
void run_sgd(Loss<T>& loss, SgdState<T> s, const Direction<T>& rule, const SgdParameters& p, const Participants& who,
             const Schedule& schedule) {
  const index_t m = who.m, d = who.d;
  const auto slot_of = who.slot_of();
  std::vector<const T*> heard;
  std::vector<index_t> senders;
  std::vector<T> direction(static_cast<std::size_t>(d));
  loss.reserve(who.threads);
  T* honest = s.momentum ? s.momentum : s.g;
  const auto message = [&](index_t i) -> const T* {
    const index_t slot = slot_of[static_cast<std::size_t>(i)];
    if (slot < 0) return honest + i * d;
    return p.ideal ? nullptr : s.forged + slot * d;
  };
  for (index_t t = 0; t < schedule.count; ++t) {
    const std::int64_t k = schedule.first + t;
    for_tasks(m, who.threads, [&](index_t i, int slot) {
      if (p.ideal && slot_of[static_cast<std::size_t>(i)] >= 0) return;
      loss.gradient(i, s.x0, k, s.g + i * d, slot);
      if (s.momentum) momentum_step<T>(s.momentum + i * d, s.g + i * d, static_cast<T>(p.momentum), d, 1);
    });
    if (!p.ideal) detail::forge(who, honest, s.x0, k, s.forged);
    detail::screen<T>(who, k, message);
    heard.clear();
    senders.clear();
    for (index_t i = 0; i < m; ++i)
      if (const T* row = who.eliminated[i] < 0 ? message(i) : nullptr) {
        heard.push_back(row);
        senders.push_back(i);
      }
    if (heard.empty()) std::fill(direction.begin(), direction.end(), T(0));
    else rule(Rows<T>{heard.data(), static_cast<index_t>(heard.size()), d}, senders, k, direction.data());
    sgd_step<T>(s.x0, direction.data(), static_cast<T>(schedule.master[t]), static_cast<T>(p.rho), s.x0, d,
                who.threads);
  }
}

}  // namespace byzadmm
