// The fused training loops. State lives in NumPy arrays that the caller owns.
#include <algorithm>
#include <cmath>
#include <functional>

#include "areas.hpp"
#include "arrays.hpp"
#include "names.hpp"
#include "native_loss.hpp"
#include "plan.hpp"

namespace byzadmm::bindings {

namespace {

/// Arrays of a training state, by name.
template <class T>
class State {
 public:
  State(const py::dict& arrays, index_t m, index_t d, index_t q) : arrays_(arrays), m_(m), d_(d), q_(q) {}
  T* vector(const char* name) const { return get(name, {d_}); }
  T* of_workers(const char* name) const { return get(name, {m_, d_}); }
  T* of_byzantine(const char* name) const { return get(name, {q_, d_}); }

 private:
  T* get(const char* name, const Shape& shape) const {
    if (!arrays_.contains(name)) throw py::key_error(expected("state", std::string("an array '") + name + "'"));
    return require_out<T>(as_array(arrays_[name], name), name, shape);
  }
  const py::dict& arrays_;
  index_t m_, d_, q_;
};

/// Participants as Python gives them: the loss says how many there are.
struct Roles {
  std::vector<index_t> byzantine;
  Attack attack;
  std::uint64_t seed;
  py::array eliminated;
  int threads;

  Participants of(const NativeLoss& loss) const {
    const index_t m = loss.workers(), d = loss.dim();
    for (const index_t j : byzantine) require_below(j, m, "byzantine", "numbers");
    require_below(attack.worker, m, "attack", "a worker");
    return {m,
            d,
            byzantine,
            attack,
            seed,
            require_out<std::int64_t>(eliminated, "eliminated", {m}),
            table().resolve_threads(threads, m * d * 32)};
  }
};

/// run(loss, arrays of the state, participants), of the precision of the state's x0.
template <class Run>
void train(const NativeLoss& loss, const py::dict& state, const Roles& roles, Run&& run) {
  if (!state.contains("x0")) throw py::key_error(expected("state", "an array 'x0'"));
  dispatch_float(as_array(state["x0"], "x0"), "x0", [&](auto tag) {
    using T = decltype(tag);
    Loss<T>& of = loss.get<T>();
    const Participants who = roles.of(loss);
    run(of, State<T>(state, who.m, who.d, who.q()), who, kernels<T>());
  });
}

Schedule schedule_of(const py::array& master, const py::array& worker, std::int64_t first) {
  const index_t count = master.size();
  return {require<double>(master, "master_steps", {count}), require<double>(worker, "worker_steps", {count}), first,
          count};
}

/// The rule of SGD: the plan for those whose messages the master hears, asked for anew when one is eliminated. Releases
/// the lock as long as it lives.
template <class T>
class Planned {
 public:
  Planned(const py::object& plan_for, T* center, const Participants& who)
      : plan_for_(plan_for), center_(center), who_(who), run_(who.threads) {}

  void operator()(Rows<T> x, const std::vector<index_t>& senders, std::int64_t k, T* out) {
    if (senders != planned_) plan(senders);
    if (!plan_) {
      std::fill(out, out + x.d, T(0));
      return;
    }
    if (draws_) draw(k);
    run_.run(plan_->stages, x, drawn_, center_, out);
    if (center_ && std::all_of(out, out + x.d, [](T v) { return std::isfinite(v); }))
      std::copy(out, out + x.d, center_);
  }

 private:
  void draw(std::int64_t k) {
    unlocked_.locked([&] {
      drawn_.clear();
      for (const py::handle& made : plan_->draw(k)) {
        const auto index = made.cast<py::array_t<index_t>>();
        drawn_.emplace_back(index.data(), index.data() + index.size());
      }
    });
  }

  void plan(const std::vector<index_t>& senders) {
    const auto eliminated = std::count_if(who_.eliminated, who_.eliminated + who_.m, [](auto k) { return k >= 0; });
    unlocked_.locked([&] {
      const py::object found = plan_for_(senders, eliminated);
      plan_ = found.is_none() ? nullptr : found.cast<const Plan*>();
      draws_ = plan_ && !plan_->draw.is_none();
      kept_ = found;
    });
    planned_ = senders;
  }

  const py::object& plan_for_;
  T* center_;
  const Participants& who_;
  PlanRun<T> run_;
  const Plan* plan_ = nullptr;
  bool draws_ = false;
  py::object kept_;  // what plan_ points to
  std::vector<index_t> planned_;
  std::vector<Indices> drawn_;
  Unlocked unlocked_;  // the last member, so that the others end with the lock held
};

}  // namespace

void bind_loops(py::module_& m) {
  py::class_<Roles>(m, "Roles", "Who is Byzantine, what those send, and whom the master has eliminated (written).")
      .def(py::init<std::vector<index_t>, Attack, std::uint64_t, py::array, int>(), py::kw_only(), "byzantine"_a,
           "attack"_a, "seed"_a, "eliminated"_a, "threads"_a);
  py::class_<Stage>(m, "Stage", "A stage of a plan; choices.hpp says what each kind makes of its settings.")
      .def(py::init([](const std::string& kind, index_t count, index_t f, double value, const py::object& weights,
                       std::vector<index_t> index, bool drawn, std::string message) {
             std::vector<double> weight;
             if (!weights.is_none()) weight = weights.cast<std::vector<double>>();
             return Stage{named<StageKind>(kind, "kind"),
                          count,
                          f,
                          value,
                          std::move(weight),
                          std::move(index),
                          drawn,
                          std::move(message)};
           }),
           "kind"_a, "count"_a = 0, py::kw_only(), "f"_a = 0, "value"_a = 0.0, "weights"_a = py::none(),
           "index"_a = std::vector<index_t>{}, "drawn"_a = false, "message"_a = "")
      .def_property_readonly("kind", [](const Stage& stage) { return name_of(stage.kind); });
  py::class_<Plan>(m, "Plan", "What a rule, or a chain of them, makes of the messages of one round.")
      .def(py::init<std::vector<Stage>, py::object>(), "stages"_a, "draw"_a = py::none());

  m.def(
      "run_admm",
      [](const NativeLoss& loss, const py::dict& state, const Roles& roles, double lam, double beta, double rho,
         const py::array& master_steps, const py::array& worker_steps, std::int64_t first) {
        train(loss, state, roles, [&](auto& of, const auto& s, const Participants& who, const auto& k) {
          const Schedule schedule = schedule_of(master_steps, worker_steps, first);
          const auto x0 = s.vector("x0"), x = s.of_workers("x"), eta = s.of_workers("eta"),
                     eta_prev = s.of_workers("eta_prev"), sent = s.of_byzantine("sent"),
                     sent_prev = s.of_byzantine("sent_prev"), forged = s.of_byzantine("forged");
          const Unlocked unlocked;
          k.run_admm(of, {x0, x, eta, eta_prev, sent, sent_prev, forged}, {lam, beta, rho}, who, schedule);
        });
      },
      "loss"_a, "state"_a, "roles"_a, py::kw_only(), "lam"_a, "beta"_a, "rho"_a, "master_steps"_a, "worker_steps"_a,
      "first"_a, "Iterations of stochastic ADMM; updates the arrays of state.");
  m.def(
      "run_rsa",
      [](const NativeLoss& loss, const py::dict& state, const Roles& roles, double lam, double rho,
         const py::array& master_steps, const py::array& worker_steps, std::int64_t first) {
        train(loss, state, roles, [&](auto& of, const auto& s, const Participants& who, const auto& k) {
          const Schedule schedule = schedule_of(master_steps, worker_steps, first);
          const auto x0 = s.vector("x0"), x = s.of_workers("x"), forged = s.of_byzantine("forged");
          const Unlocked unlocked;
          k.run_rsa(of, {x0, x, forged}, {lam, rho}, who, schedule);
        });
      },
      "loss"_a, "state"_a, "roles"_a, py::kw_only(), "lam"_a, "rho"_a, "master_steps"_a, "worker_steps"_a, "first"_a,
      "Iterations of RSA; updates the arrays of state.");
  m.def(
      "run_sgd",
      [](const NativeLoss& loss, const py::dict& state, const Roles& roles, const py::object& plan, double rho,
         double momentum, bool ideal, const py::array& steps, std::int64_t first) {
        train(loss, state, roles, [&](auto& of, const auto& s, const Participants& who, const auto& k) {
          const Schedule schedule = schedule_of(steps, steps, first);
          const auto x0 = s.vector("x0"), g = s.of_workers("g"), forged = s.of_byzantine("forged");
          const auto velocity = momentum != 0 ? s.of_workers("momentum") : nullptr;
          auto* const center = state.contains("center") ? s.vector("center") : nullptr;
          Planned rule(plan, center, who);
          k.run_sgd(of, {x0, g, velocity, forged}, std::ref(rule), {rho, momentum, ideal}, who, schedule);
        });
      },
      "loss"_a, "state"_a, "roles"_a, py::kw_only(), "plan"_a, "rho"_a, "momentum"_a, "ideal"_a, "steps"_a, "first"_a,
      "Iterations of SGD; plan(workers, how many are eliminated): the rule for the messages of these, or None.");
}

}  // namespace byzadmm::bindings
