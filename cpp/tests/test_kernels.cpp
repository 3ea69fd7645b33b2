// The kernels without Python, against plain loops; meant to run under AddressSanitizer and UBSan.
#include "byzadmm/admm.hpp"
#include "byzadmm/arrivals.hpp"
#include "byzadmm/geometric_median.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/median.hpp"
#include "byzadmm/philox.hpp"
#include "byzadmm/rsa.hpp"
#include "support.hpp"

namespace byzadmm::tests {

namespace {

enum class Kind { normal, ties, infinities };

template <class T>
RowBuffers<T> make_rows(index_t n, index_t d, Kind kind) {
  RowBuffers<T> x(n, d);
  std::uniform_int_distribution<int> small(-2, 2);
  for (auto& row : x.row)
    for (index_t j = 0; j < d; ++j) {
      if (kind == Kind::ties) row[j] = static_cast<T>(small(generator));
      if (kind == Kind::infinities && small(generator) == 2) row[j] = small(generator) < 0 ? -kInf<T> : kInf<T>;
    }
  return x;
}

template <class T>
void test_median() {
  using byzadmm::Even;
  for (index_t n = 1; n <= 300; ++n)
    for (const Kind kind : {Kind::normal, Kind::ties, Kind::infinities}) {
      const index_t d = n <= 70 ? 19 : 1 + n % 7;
      const auto x = make_rows<T>(n, d, kind);
      for (const Even even : {Even::mid, Even::low, Even::high}) {
        Buffer<T> out(d);
        byzadmm::median<T>(x.view(), even, out.get(), n % 2 ? 1 : 3);
        bool ok = true;
        for (index_t j = 0; j < d; ++j) {
          const auto column = x.sorted_column(j);
          const T a = column[static_cast<std::size_t>((n - 1) / 2)], b = column[static_cast<std::size_t>(n / 2)];
          const T mid = n % 2 ? a : a / 2 + b / 2;
          ok = ok && same(out[j], even == Even::low ? a : even == Even::high ? b : mid);
        }
        check(ok, "median " + name_of<T>() + " n=" + std::to_string(n) + " kind=" +
                      std::to_string(static_cast<int>(kind)) + " even=" + std::to_string(static_cast<int>(even)));
      }
    }
}

template <class T>
void test_trimmed_mean() {
  for (index_t n = 1; n <= 300; ++n)
    for (const Kind kind : {Kind::normal, Kind::ties})
      for (const index_t f : {index_t{0}, n / 4, (n - 1) / 2}) {
        const index_t d = n <= 70 ? 19 : 1 + n % 7;
        auto x = make_rows<T>(n, d, kind);
        // f rows at the ends of the line: they must leave no trace.
        for (index_t i = 0; i < f; ++i)
          for (index_t j = 0; j < d; ++j) x.row[static_cast<std::size_t>(i)][j] = i % 2 ? kInf<T> : T(-1e30);
        Buffer<T> out(d);
        const bool suspect = byzadmm::trimmed_mean<T>(x.view(), f, out.get(), n % 2 ? 1 : 3);
        bool ok = suspect == (f > 1);
        for (index_t j = 0; j < d; ++j) {
          const auto column = x.sorted_column(j);
          double sum = 0;
          for (index_t i = f; i < n - f; ++i) sum += static_cast<double>(column[static_cast<std::size_t>(i)]);
          ok = ok && close(static_cast<double>(out[j]), sum / static_cast<double>(n - 2 * f), 16 * kEps<T>);
        }
        check(ok, "trimmed_mean " + name_of<T>() + " n=" + std::to_string(n) + " f=" + std::to_string(f));
      }
}

template <class T>
void test_mean() {
  for (const index_t n : {1, 2, 3, 4, 5, 7, 20, 65})
    for (const index_t d : {1, 7, 511, 512, 513, 1031}) {
      RowBuffers<T> x(n, d);
      Buffer<double> weight(n);
      for (index_t i = 0; i < n; ++i) weight[i] = static_cast<double>(1 + i % 3);
      Buffer<T> plain(d), weighted(d);
      const bool odd = byzadmm::mean<T>(x.view(), nullptr, plain.get(), 3);
      byzadmm::mean<T>(x.view(), weight.get(), weighted.get(), 1);
      bool ok = !odd;
      for (index_t j = 0; j < d; ++j) {
        double sum = 0, sum_w = 0, total = 0;
        for (index_t i = 0; i < n; ++i) {
          const double v = static_cast<double>(x.row[static_cast<std::size_t>(i)][j]);
          sum += v;
          sum_w += weight[i] * v;
          total += weight[i];
        }
        const double tolerance = 16 * kEps<T>;
        ok = ok && close(static_cast<double>(plain[j]), sum / static_cast<double>(n), tolerance) &&
             close(static_cast<double>(weighted[j]), sum_w / total, tolerance);
      }
      check(ok, "mean " + name_of<T>() + " " + std::to_string(n) + "x" + std::to_string(d));
      for (index_t i = 0; i < n; ++i) x.row[static_cast<std::size_t>(i)][d - 1] = std::numeric_limits<T>::max();
      ok = !byzadmm::mean<T>(x.view(), weight.get(), weighted.get(), 2) && weighted[d - 1] > 0;
      check(ok, "mean of the largest numbers " + name_of<T>() + " " + std::to_string(n) + "x" + std::to_string(d));
    }
}

template <class T>
void test_nonfinite() {
  const index_t n = 6, d = 1027;
  RowBuffers<T> x(n, d);
  x.row[1][d - 1] = kNaN<T>;
  x.row[4][0] = -kInf<T>;
  Buffer<bool> bad(n);
  byzadmm::nonfinite_rows<T>(x.view(), bad.get(), 2);
  for (index_t i = 0; i < n; ++i) check(bad[i] == (i == 1 || i == 4), "nonfinite_rows row " + std::to_string(i));
  Buffer<T> out(d);
  check(byzadmm::mean<T>(x.view(), nullptr, out.get(), 2), "mean tells of a sum that is not finite");
  for (index_t j = 0; j < d; ++j) out[j] = T(1);
  byzadmm::mark_nan_columns<T>(x.view(), out.get(), 2);
  bool ok = out[d - 1] != out[d - 1];
  for (index_t j = 0; j < d - 1; ++j) ok = ok && out[j] == T(1);
  check(ok, "mark_nan_columns " + name_of<T>());
}

template <class T>
void test_steps() {
  for (const index_t d : {1, 7, 511, 513, 8193}) {
    const index_t m = 3;
    Buffer<T> x(m * d), g(m * d), eta(m * d), prev(m * d), x0(d), out(m * d), master(d);
    for (auto* b : {&x, &g, &eta, &prev, &x0}) fill_normal(*b);
    x[0] = x0[0];  // sgn(0)
    const double alpha = 0.25, beta = 0.5, lam = 0.75, rho = 0.125;
    const T alpha_t = T(alpha), beta_t = T(beta), lam_t = T(lam);
    const double tolerance = 32 * kEps<T>;
    const auto at = [](const Buffer<T>& b, index_t e) { return static_cast<double>(b[e]); };
    const auto compare = [&](const Buffer<T>& got, const char* name, auto expected) {
      bool ok = true;
      for (index_t e = 0; e < got.size; ++e) ok = ok && close(at(got, e), expected(e), tolerance);
      check(ok, std::string(name) + " " + name_of<T>() + " d=" + std::to_string(d));
    };
    const auto sign = [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; };

    byzadmm::admm_worker_step<T>(x.get(), g.get(), eta.get(), prev.get(), alpha_t, out.get(), m * d, 3);
    compare(out, "admm_worker_step",
            [&](index_t e) { return at(x, e) - alpha * (at(g, e) + 2 * at(eta, e) - at(prev, e)); });
    byzadmm::admm_dual_step<T>(eta.get(), x.get(), x0.get(), beta_t, lam_t, out.get(), m, d, 3);
    compare(out, "admm_dual_step", [&](index_t e) {
      return std::min(lam, std::max(-lam, at(eta, e) + beta / 2 * (at(x, e) - at(x0, e % d))));
    });
    byzadmm::rsa_worker_step<T>(x.get(), g.get(), x0.get(), alpha_t, lam_t, out.get(), m, d, 3);
    compare(out, "rsa_worker_step",
            [&](index_t e) { return at(x, e) - alpha * (at(g, e) + lam * sign(at(x, e) - at(x0, e % d))); });
    const MatrixRows<T> eta_rows(eta.get(), m, d), prev_rows(prev.get(), m, d), x_rows(x.get(), m, d);
    byzadmm::admm_master_step<T>(x0.get(), eta_rows, prev_rows, alpha, rho, master.get(), 3);
    compare(master, "admm_master_step", [&](index_t j) {
      double pull = 0;
      for (index_t i = 0; i < m; ++i) pull += 2 * at(eta, i * d + j) - at(prev, i * d + j);
      return at(x0, j) - alpha * (rho * at(x0, j) - pull);
    });
    byzadmm::rsa_master_step<T>(x0.get(), x_rows, alpha, lam, rho, master.get(), 3);
    compare(master, "rsa_master_step", [&](index_t j) {
      double pull = 0;
      for (index_t i = 0; i < m; ++i) pull += sign(at(x, i * d + j) - at(x0, j));
      return at(x0, j) - alpha * (rho * at(x0, j) - lam * pull);
    });

    // Both steps of a worker in one pass give the same bits, whoever shares the work.
    Buffer<T> moved(m * d), dual(m * d);
    byzadmm::admm_worker_step<T>(x.get(), g.get(), eta.get(), prev.get(), alpha_t, moved.get(), m * d, 1);
    byzadmm::admm_dual_step<T>(eta.get(), moved.get(), x0.get(), beta_t, lam_t, dual.get(), m, d, 1);
    Buffer<T> w(m * d), s(m * d), e(m * d), p(m * d);
    const Buffer<T>* from[] = {&x, &g, &eta, &prev};
    Buffer<T>* to[] = {&w, &s, &e, &p};
    for (int i = 0; i < 4; ++i) std::copy(from[i]->get(), from[i]->get() + m * d, to[i]->get());
    byzadmm::admm_answer<T>(w.get(), s.get(), e.get(), p.get(), x0.get(), alpha_t, beta_t, lam_t, m, d, 3);
    const auto equal = [&](const Buffer<T>& a, const Buffer<T>& b) {
      return std::equal(a.get(), a.get() + m * d, b.get());
    };
    check(equal(w, moved) && equal(s, dual) && equal(e, dual) && equal(p, eta), "admm_answer " + name_of<T>());

    // In place gives the same bits.
    Buffer<T> copy(m * d);
    std::copy(eta.get(), eta.get() + m * d, copy.get());
    byzadmm::admm_dual_step<T>(eta.get(), x.get(), x0.get(), beta_t, lam_t, out.get(), m, d, 1);
    byzadmm::admm_dual_step<T>(copy.get(), x.get(), x0.get(), beta_t, lam_t, copy.get(), m, d, 2);
    check(std::equal(out.get(), out.get() + m * d, copy.get()), "admm_dual_step in place");
  }
}

void test_philox() {
  // The published known-answer vector of Philox4x64-10 with key and counter zero.
  std::uint64_t word[4];
  byzadmm::PhiloxBlocks({0, 0, 0, 0}).block(0, word);
  const std::uint64_t known[4] = {0x16554d9eca36314cu, 0xdb20fe9d672d0fdcu, 0xd7e772cee186176bu, 0x7e68b68aec7ba23bu};
  for (int i = 0; i < 4; ++i) check(word[i] == known[i], "philox known word " + std::to_string(i));

  for (const index_t size : {0, 1, 3, 4, 5, 63, 64, 65, 130}) {
    Buffer<std::int64_t> whole(size);
    byzadmm::philox_integers({7, 1, 2, 3}, 10, whole.get(), size);
    bool ok = true;
    for (index_t e = 0; e < size; ++e) {
      byzadmm::PhiloxBlocks({7, 1, 2, 3}).block(static_cast<std::uint64_t>(e / 4), word);
      const auto share = static_cast<long double>(word[e % 4]) / 18446744073709551616.0L;
      ok = ok && whole[e] == static_cast<std::int64_t>(share * 10);
    }
    check(ok, "philox_integers size=" + std::to_string(size));
    Buffer<float> single(size);
    Buffer<double> wide(size);
    byzadmm::philox_normal({7, 1, 2, 3}, 2.0f, single.get(), size);
    byzadmm::philox_normal({7, 1, 2, 3}, 2.0, wide.get(), size);
    ok = true;
    // Phi(z) is the probability that the word named: the inverse is checked by the error function.
    for (index_t e = 0; e < size; ++e) {
      byzadmm::PhiloxBlocks({7, 1, 2, 3}).block(static_cast<std::uint64_t>(e / 4), word);
      const std::uint64_t w = word[e % 4];
      const double p = (static_cast<double>((w & 0x7fffffffffffffffu) >> 11) + 0.5) * 0x1p-53;
      const double tail = 0.5 * std::erfc(std::abs(wide[e]) / 2 / std::sqrt(2.0));
      ok = ok && close(tail, p, 1e-14) && std::signbit(wide[e]) == (w >> 63 != 0);
      byzadmm::PhiloxBlocks({7, 1, 2, 3}).block(static_cast<std::uint64_t>(e / 8), word);
      const auto half = static_cast<std::uint32_t>(word[e % 8 / 2] >> (e % 2 ? 32 : 0));
      const double q = (static_cast<double>(half & 0x7fffffffu) + 0.5) * 0x1p-32;
      const double tail_single = 0.5 * std::erfc(std::abs(static_cast<double>(single[e])) / 2 / std::sqrt(2.0));
      ok = ok && close(tail_single, q, 1e-6) && std::signbit(single[e]) == (half >> 31 != 0);
    }
    check(ok, "philox_normal size=" + std::to_string(size));
  }
}

/// max(0, ||sum over rows apart from z of w_i (x_i - z) / ||x_i - z|| || - weight at z) / sum w.
template <class T>
double residual_at(const RowBuffers<T>& x, const std::vector<double>& weight, const std::vector<double>& z) {
  std::vector<double> pull(z.size());
  double at = 0, total = 0;
  for (index_t i = 0; i < x.n; ++i) {
    const double w = weight[static_cast<std::size_t>(i)];
    double square = 0;
    for (std::size_t j = 0; j < z.size(); ++j) {
      const double v = static_cast<double>(x.row[static_cast<std::size_t>(i)][static_cast<index_t>(j)]) - z[j];
      square += v * v;
    }
    total += w;
    if (square == 0) {
      at += w;
      continue;
    }
    for (std::size_t j = 0; j < z.size(); ++j)
      pull[j] += w * (static_cast<double>(x.row[static_cast<std::size_t>(i)][static_cast<index_t>(j)]) - z[j]) /
                 std::sqrt(square);
  }
  double norm = 0;
  for (const double v : pull) norm += v * v;
  return std::max(0.0, std::sqrt(norm) - at) / total;
}

template <class T>
void test_geometric_median() {
  for (const index_t n : {1, 3, 4, 7, 20, 33})
    for (const index_t d : {2, 3, 17, 129})
      for (const bool weighted : {false, true})
        for (const int threads : {1, 3}) {
          RowBuffers<T> x(n, d);
          Buffer<double> weight(n), share(n);
          std::vector<double> w(static_cast<std::size_t>(n), 1.0);
          for (index_t i = 0; i < n; ++i)
            weight[i] = w[static_cast<std::size_t>(i)] = weighted ? static_cast<double>(1 + i % 3) : 1.0;
          Buffer<T> out(d);
          const auto info = byzadmm::geometric_median<T>(x.view(), weighted ? weight.get() : nullptr, 1e-6, 1000,
                                                         out.get(), share.get(), threads);
          std::vector<double> z(static_cast<std::size_t>(d)), mix(z.size());
          double sum = 0, apart = 0;
          for (index_t j = 0; j < d; ++j) z[static_cast<std::size_t>(j)] = static_cast<double>(out[j]);
          for (index_t i = 0; i < n; ++i) {
            sum += share[i];
            for (index_t j = 0; j < d; ++j)
              mix[static_cast<std::size_t>(j)] += share[i] * static_cast<double>(x.row[static_cast<std::size_t>(i)][j]);
          }
          for (std::size_t j = 0; j < z.size(); ++j) apart = std::max(apart, std::abs(mix[j] - z[j]));
          const std::string label = " " + name_of<T>() + " " + std::to_string(n) + "x" + std::to_string(d);
          check(info.converged && info.residual <= 1e-6, "geometric_median converges" + label);
          // Rounding the result to T moves the residual by about eps.
          check(residual_at(x, w, z) <= 2e-6 + 8 * kEps<T>, "geometric_median is optimal" + label);
          check(close(sum, 1.0, 1e-9) && apart <= 1e-5, "geometric_median is a combination of rows" + label);
        }
  // A majority at one point is the minimiser, exactly.
  RowBuffers<T> x(7, 9);
  for (const std::size_t i : {1u, 3u, 5u, 6u}) std::copy(x.row[1].get(), x.row[1].get() + 9, x.row[i].get());
  Buffer<T> out(9);
  Buffer<double> share(7);
  byzadmm::geometric_median<T>(x.view(), nullptr, 1e-6, 1000, out.get(), share.get(), 1);
  check(std::equal(out.get(), out.get() + 9, x.row[1].get()), "geometric_median at a data point is exact");
  // Attackers at both ends of the range: the squares of the largest overflow, those of the smallest vanish.
  for (const index_t d : {3, 40}) {
    RowBuffers<T> mixed(13, d);
    double most = 0;
    for (index_t i = 0; i < 13; ++i)
      for (index_t j = 0; j < d; ++j) {
        T& value = mixed.row[static_cast<std::size_t>(i)][j];
        if (i % 5 == 0) value = (j % 2 == 0 ? T(1) : T(-1)) * std::numeric_limits<T>::max();
        else if (i % 5 == 1) value *= std::numeric_limits<T>::denorm_min();
        else most = std::max(most, std::abs(static_cast<double>(value)));
      }
    Buffer<T> z(d);
    Buffer<double> shares(13);
    const auto info = byzadmm::geometric_median<T>(mixed.view(), nullptr, 1e-6, 1000, z.get(), shares.get(), 1);
    bool inside = info.converged;
    for (index_t j = 0; j < d; ++j) inside = inside && std::abs(static_cast<double>(z[j])) <= most;
    check(inside, "geometric_median beside rows of any size " + name_of<T>() + " d=" + std::to_string(d));
  }
}

template <class T>
void test_arrivals() {
  for (const index_t d : {1, 7, 8, 9, 64, 1027}) {
    const std::string case_ = " " + name_of<T>() + " d=" + std::to_string(d);
    Buffer<T> g(d), h(d), out(d), mean(d), eta(d), prev(d);
    for (auto* b : {&g, &h, &eta, &prev}) fill_normal(*b);
    Buffer<double> v(d), total(d), change(d);
    for (index_t j = 0; j < d; ++j) v[j] = static_cast<double>(g[j]);

    // The master's own gradient is accepted up to alpha = rho, as it is; at any size, and its opposite never.
    check(
        zeno_direction<T>(g.get(), v.get(), 0.5, 0.5, 0.0, out.get(), d) && std::equal(g.get(), g.get() + d, out.get()),
        "zeno_direction of its own" + case_);
    for (index_t j = 0; j < d; ++j) v[j] = -v[j] * 0x1p900;
    check(!zeno_direction<T>(g.get(), v.get(), 0.5, 0.0, 0.0, out.get(), d), "zeno_direction of the opposite" + case_);
    v[d - 1] = kNaN<double>;
    check(!zeno_direction<T>(g.get(), v.get(), 0.5, 0.0, 1.0, out.get(), d), "zeno_direction without its own" + case_);

    mean[0] = kNaN<T>;  // what was there before the first message does not count
    add_to_mean<T>(mean.get(), g.get(), 1, d);
    add_to_mean<T>(mean.get(), h.get(), 2, d);
    bool ok = true;
    for (index_t j = 0; j < d; ++j) ok = ok && close(mean[j], (double(g[j]) + double(h[j])) / 2, 4 * kEps<T>);
    check(ok, "add_to_mean" + case_);

    const Buffer<T>& before = h;
    std::copy(h.get(), h.get() + d, eta.get());
    admm_hear<T>(g.get(), eta.get(), prev.get(), total.get(), change.get(), d);
    ok = true;
    for (index_t j = 0; j < d; ++j)
      ok = ok && eta[j] == g[j] && prev[j] == before[j] && total[j] == double(g[j]) - double(before[j]) &&
           change[j] == total[j];
    check(ok, "admm_hear" + case_);
    std::copy(g.get(), g.get() + d, out.get());
    admm_master_step_of_sums<T>(out.get(), total.get(), change.get(), 0.5, 0.25, d);
    ok = true;
    for (index_t j = 0; j < d; ++j)
      ok = ok && change[j] == 0 && close(out[j], double(g[j]) * 0.875 + total[j], 32 * kEps<T>);
    check(ok, "admm_master_step_of_sums" + case_);
  }
}

template <class T>
void test_all() {
  test_median<T>();
  test_trimmed_mean<T>();
  test_mean<T>();
  test_nonfinite<T>();
  test_steps<T>();
  test_arrivals<T>();
  test_geometric_median<T>();
}

}  // namespace

void test_kernels() {
  test_philox();
  test_all<float>();
  test_all<double>();
}

}  // namespace byzadmm::tests
