// The fused loops: the same bits for every thread count and however the iterations are split, and the same as their
// parts called one by one. And kernels that their caller ends early, wherever that is.
#include "byzadmm/closest.hpp"
#include "byzadmm/geometric_median.hpp"
#include "byzadmm/mean.hpp"
#include "byzadmm/median.hpp"
#include "byzadmm/mixing.hpp"
#include "byzadmm/simulation.hpp"
#include "byzadmm/weighted.hpp"
#include "support.hpp"

namespace byzadmm::tests {

namespace {

template <class X>
struct Problem {
  index_t workers, samples = 57, features = 13, classes = 3, batch;
  Buffer<X> x{samples * features};
  Buffer<std::int64_t> y{samples}, flipped{samples}, part{samples}, offset{workers + 1};
  Buffer<double> real{samples};
  Buffer<bool> poisoned{workers};

  Problem(index_t workers, index_t batch) : workers(workers), batch(batch) {
    std::uniform_int_distribution<int> pixel(0, 255), label(0, 2);
    for (index_t e = 0; e < x.size; ++e) x[e] = static_cast<X>(pixel(generator));
    for (index_t i = 0; i < samples; ++i) {
      y[i] = label(generator);
      flipped[i] = classes - 1 - y[i];
      real[i] = static_cast<double>(y[i]) / 7;
      part[i] = samples - 1 - i;
    }
    for (index_t i = 0; i <= workers; ++i) offset[i] = samples * i / workers;
    poisoned[workers - 1] = true;
  }

  template <class T>
  SoftmaxLoss<T> loss() const {
    return SoftmaxLoss<T>({samples_as<T, X>({x.get(), samples, features}), y.get(), flipped.get(), part.get(),
                           offset.get(), poisoned.get(), workers, classes, batch, 1.0 / 255, 11});
  }
  index_t dim() const { return classes * (features + 1); }

  /// The same samples with the targets of another loss; poisoned workers see flipped.
  template <class T, class F>
  LinearLoss<T, F> regression(const Buffer<typename F::Target>& targets,
                              const Buffer<typename F::Target>& other) const {
    return LinearLoss<T, F>({samples_as<T, X>({x.get(), samples, features}), targets.get(), other.get(), part.get(),
                             offset.get(), poisoned.get(), workers, 1, batch, 1.0 / 255, 11});
  }
};

/// A worker's gradient, whoever asked for which before, is that of the batch its stream draws.
template <class F, class T, class X>
void test_batches_of(const std::string& name, const Problem<X>& problem, LinearLoss<T, F> loss,
                     const Buffer<typename F::Target>& y, const Buffer<typename F::Target>& flipped) {
  loss.reserve(2);
  const index_t d = loss.dim(), batch = problem.batch, workers = problem.workers;
  Buffer<T> model(d), g(d), expected(d);
  fill_normal(model);
  std::uniform_int_distribution<index_t> any(0, workers - 1);
  bool ok = true;
  for (int call = 0; call < 40; ++call) {
    const bool in_order = call < 20;  // first as a loop asks, then anyhow
    const index_t worker = in_order ? call % workers : any(generator);
    const std::int64_t k = in_order ? 1 + call / workers : any(generator);
    loss.gradient(worker, model.get(), k, g.get(), call % 3 == 2 ? 1 : 0);
    Buffer<std::int64_t> idx(batch);
    const std::int64_t lo = problem.offset[worker], size = problem.offset[worker + 1] - lo;
    philox_integers(Stream{11, 0, static_cast<std::uint64_t>(worker), static_cast<std::uint64_t>(k)},
                    static_cast<std::uint64_t>(size), idx.get(), batch);
    for (index_t b = 0; b < batch; ++b) idx[b] = problem.part[lo + idx[b]];
    const LinearModel<T> shape{model.get(), d / (problem.features + 1), problem.features, problem.features + 1,
                               T(1.0 / 255)};
    linear_gradient<F, T>(shape, model.get(), samples_as<T, X>({problem.x.get(), problem.samples, problem.features}),
                          problem.poisoned[worker] ? flipped.get() : y.get(), idx.get(), 1, batch, expected.get(), 1);
    ok = ok && std::equal(g.get(), g.get() + d, expected.get());
  }
  check(ok, name + name_of<T>() + " workers=" + std::to_string(workers) + " batch=" + std::to_string(batch));
}

template <class T, class X>
void test_batches(index_t workers, index_t batch) {
  const Problem<X> problem(workers, batch);
  test_batches_of<Softmax, T>("batches, softmax ", problem, problem.template loss<T>(), problem.y, problem.flipped);
  Buffer<std::int64_t> two(problem.samples), other(problem.samples);
  for (index_t i = 0; i < problem.samples; ++i) other[i] = 1 - (two[i] = problem.y[i] > 0);
  test_batches_of<Logistic, T>("batches, logistic ", problem, problem.template regression<T, Logistic>(two, other), two,
                               other);
  const auto squares = problem.template regression<T, LeastSquares>(problem.real, problem.real);
  test_batches_of<LeastSquares, T>("batches, least squares ", problem, squares, problem.real, problem.real);
}

template <class T>
struct Run {
  Run(index_t m, index_t q, index_t d) : m(m), q(q), d(d) { std::fill(eliminated.get(), eliminated.get() + m, -1); }
  index_t m, q, d;
  Buffer<T> x0{d}, x{m * d}, eta{m * d}, eta_prev{m * d}, sent{q * d}, sent_prev{q * d}, forged{q * d}, g{m * d},
      momentum{m * d};
  Buffer<std::int64_t> eliminated{m};

  bool operator==(const Run& other) const {
    const auto equal = [](const Buffer<T>& a, const Buffer<T>& b) {
      return std::equal(a.get(), a.get() + a.size, b.get(), same<T>);
    };
    return equal(x0, other.x0) && equal(x, other.x) && equal(eta, other.eta) && equal(eta_prev, other.eta_prev) &&
           equal(sent, other.sent) && equal(momentum, other.momentum) &&
           std::equal(eliminated.get(), eliminated.get() + m, other.eliminated.get());
  }
};

enum class Method { admm, rsa, sgd, momentum };

template <class T>
Run<T> trained(Method method, const Problem<std::uint8_t>& problem, Attack attack, int threads,
               const std::vector<index_t>& pieces) {
  const index_t m = problem.workers, q = std::min<index_t>(2, m - 1), d = problem.dim();
  auto loss = problem.template loss<T>();
  Run<T> run(m, q, d);
  std::vector<index_t> byzantine;
  for (index_t i = m - q; i < m; ++i) byzantine.push_back(i);
  const Participants who{m, d, byzantine, attack, 11, run.eliminated.get(), threads};
  const Direction<T> direction = [&](Rows<T> x, const std::vector<index_t>&, std::int64_t, T* out) {
    median<T>(x, Even::mid, out, threads);
  };
  std::int64_t first = 1;
  for (const index_t count : pieces) {
    const std::vector<double> steps(static_cast<std::size_t>(count), 0.1);
    const Schedule schedule{steps.data(), steps.data(), first, count};
    if (method == Method::admm)
      run_admm<T>(loss,
                  {run.x0.get(), run.x.get(), run.eta.get(), run.eta_prev.get(), run.sent.get(), run.sent_prev.get(),
                   run.forged.get()},
                  {0.05, 0.5, 0.01}, who, schedule);
    if (method == Method::rsa)
      run_rsa<T>(loss, {run.x0.get(), run.x.get(), run.forged.get()}, {0.05, 0.01}, who, schedule);
    if (method == Method::sgd || method == Method::momentum)
      run_sgd<T>(
          loss,
          {run.x0.get(), run.g.get(), method == Method::momentum ? run.momentum.get() : nullptr, run.forged.get()},
          direction, {0.01, 0.9, false}, who, schedule);
    first += count;
  }
  return run;
}

/// run_admm against the kernels of admm.hpp one after the other, all workers at once.
template <class T>
void test_admm_by_its_parts() {
  const Problem<std::uint8_t> problem(4, 5);
  const Run<T> fused = trained<T>(Method::admm, problem, {AttackKind::sign_flip, -3.0, 0}, 1, {3});
  auto loss = problem.template loss<T>();
  loss.reserve(1);
  Run<T> run(4, 2, problem.dim());
  const index_t m = run.m, q = run.q, d = run.d;
  for (std::int64_t k = 1; k <= 3; ++k) {
    std::vector<const T*> now, before;
    for (index_t i = 0; i < m; ++i) {
      now.push_back(i < m - q ? run.eta.get() + i * d : run.sent.get() + (i - m + q) * d);
      before.push_back(i < m - q ? run.eta_prev.get() + i * d : run.sent_prev.get() + (i - m + q) * d);
    }
    admm_master_step<T>(run.x0.get(), {now.data(), m, d}, {before.data(), m, d}, 0.1, 0.01, run.x0.get(), 1);
    for (index_t i = 0; i < m; ++i) loss.gradient(i, run.x.get() + i * d, k, run.g.get() + i * d, 0);
    admm_worker_step<T>(run.x.get(), run.g.get(), run.eta.get(), run.eta_prev.get(), T(0.1), run.x.get(), m * d, 1);
    admm_dual_step<T>(run.eta.get(), run.x.get(), run.x0.get(), T(0.5), T(0.05), run.eta_prev.get(), m, d, 1);
    std::swap(run.eta.data, run.eta_prev.data);
    for (index_t e = 0; e < q * d; ++e) run.forged[e] = T(-3) * run.x[(m - q) * d + e];
    admm_dual_step<T>(run.sent.get(), run.forged.get(), run.x0.get(), T(0.5), T(0.05), run.sent_prev.get(), q, d, 1);
    std::swap(run.sent.data, run.sent_prev.data);
  }
  check(fused == run, "run_admm by its parts " + name_of<T>());
}

struct Stopped {};

class StopAfter final : public Watch {
 public:
  explicit StopAfter(int looks) : left_(looks) { watched().by = this; }
  ~StopAfter() override { watched() = {}; }

  bool asked_to_stop() const { return left_ < 0; }

 private:
  int look() override {
    if (left_-- == 0) error_ = std::make_exception_ptr(Stopped{});
    return 1;
  }
  int left_;
};

/// kernel() ends with the caller's exception if and only if the caller asked for it, however many looks it took.
template <class Kernel>
void test_stopping(const std::string& name, Kernel&& kernel) {
  int looks = 0;
  for (bool ended = true; ended; looks += 1 + looks / 4) {
    const StopAfter watch(looks);
    ended = false;
    try {
      kernel();
    } catch (const Stopped&) {
      ended = true;
    }
    check(ended == watch.asked_to_stop(), "ends as asked: " + name);
  }
  check(looks > 1, "stops early: " + name);
}

void test_stopping_everywhere() {
  using T = float;
  const index_t n = 80, d = 150;
  const RowBuffers<T> x(n, d);
  Buffer<T> out(d), means(n * d);
  Buffer<double> weight(n), share(n);
  Buffer<index_t> chosen(n);
  std::fill(weight.get(), weight.get() + n, 1.0);
  for (index_t i = 0; i < n; ++i) chosen[i] = i;
  for (const int threads : {1, 3}) {
    const std::string label = " threads=" + std::to_string(threads);
    test_stopping("median" + label, [&] { median<T>(x.view(), Even::mid, out.get(), threads); });
    test_stopping("geometric_median" + label, [&] {
      byzadmm::geometric_median<T>(x.view(), nullptr, 1e-6, 1000, out.get(), share.get(), threads);
    });
    test_stopping("neighbor_means" + label,
                  [&] { neighbor_means<T>(x.view(), chosen.get(), n / 2, 2, means.get(), threads); });
    test_stopping("weighted_median" + label,
                  [&] { weighted_median<T>(x.view(), weight.get(), Even::mid, out.get(), threads); });
    test_stopping("closest_mean" + label,
                  [&] { closest_mean<T>(x.view(), x.row[0].get(), n / 2, out.get(), threads); });
    const Problem<std::uint8_t> problem(7, 45);
    for (const Method method : {Method::admm, Method::rsa, Method::momentum})
      test_stopping("training" + label, [&] { trained<T>(method, problem, {AttackKind::alie, 1.0, 0}, threads, {3}); });
  }
  Buffer<T> draws(200000);
  test_stopping("philox_normal", [&] { philox_normal(Stream{1, 2, 3, 4}, 1.0f, draws.get(), draws.size); });
}

template <class T>
void test_all() {
  for (const index_t workers : {1, 2, 5, 19})
    for (const index_t batch : {1, 32, 45}) {
      test_batches<T, std::uint8_t>(workers, batch);
      test_batches<T, float>(workers, batch);
    }
  test_admm_by_its_parts<T>();
  const Attack attacks[] = {{AttackKind::sign_flip, -3.0, 0},
                            {AttackKind::gaussian, 100.0, 0},
                            {AttackKind::alie, 1.0, 0},
                            {AttackKind::duplicate, 0.0, 0},
                            {AttackKind::constant, kNaN<double>, 0},
                            {AttackKind::dual_oscillation, 0.05, 0}};
  for (const Method method : {Method::admm, Method::rsa, Method::sgd, Method::momentum})
    for (const index_t workers : {2, 7})
      for (const Attack& attack : attacks) {
        const Problem<std::uint8_t> problem(workers, 9);
        const Run<T> whole = trained<T>(method, problem, attack, 1, {5});
        const std::string label = std::to_string(static_cast<int>(method)) + " attack " +
                                  std::to_string(static_cast<int>(attack.kind)) + " " + name_of<T>();
        check(whole == trained<T>(method, problem, attack, 3, {5}), "threads, method " + label);
        check(whole == trained<T>(method, problem, attack, 2, {1, 3, 1}), "pieces, method " + label);
        const bool caught = whole.eliminated[workers - 1] >= 0;
        check(caught == (attack.kind == AttackKind::constant), "who is eliminated, method " + label);
      }
}

}  // namespace

void test_training() {
  test_stopping_everywhere();
  test_all<float>();
  test_all<double>();
}

}  // namespace byzadmm::tests
