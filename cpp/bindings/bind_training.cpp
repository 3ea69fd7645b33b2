// Losses, attacks and messages.
#include "areas.hpp"
#include "arrays.hpp"
#include "linear_losses.hpp"
#include "names.hpp"
#include "native_loss.hpp"

namespace byzadmm::bindings {

namespace {

/// The loss of a linear model on everybody's samples.
template <class Binding>
NativeLoss make_linear(const py::array& x, const py::array& y, const py::array& flipped, const py::array& part,
                       const py::array& offset, const py::array& poisoned, index_t outputs, double scale, index_t batch,
                       std::uint64_t seed, bool single) {
  using Target = typename Binding::Target;
  require_dims(x, "X", 2);
  require_dims(offset, "offset", 1);
  const index_t n = x.shape(0), m = offset.shape(0) - 1;
  const auto* y_ = require<Target>(y, "y", {n});
  const auto* f_ = require<Target>(flipped, "flipped", {n});
  const auto* p_ = require<std::int64_t>(part, "part", shape_of(part));
  const auto* o_ = require<std::int64_t>(offset, "offset", {m + 1});
  const bool* bad = require<bool>(poisoned, "poisoned", {m});
  require_value(m >= 1 && batch >= 1 && outputs >= 1, Binding::name, "at least one worker, sample and class");
  require_value(o_[0] == 0 && o_[m] == part.size(), "offset", "to cover part");
  for (index_t i = 0; i < m; ++i) require_value(o_[i + 1] > o_[i], "offset", "at least one sample per worker");
  for (index_t e = 0; e < part.size(); ++e) require_below(p_[e], n, "part", "indices");
  for (const Target* targets : {y_, f_}) require_targets(targets, nullptr, n, Binding::labels(outputs));
  NativeLoss loss;
  loss.keep = {x, y, flipped, part, offset, poisoned};
  const auto make = [&](auto tag) {
    using T = decltype(tag);
    loss.put(Binding::of(kernels<T>()).make({samples_of<T>(x), y_, f_, p_, o_, bad, m, outputs, batch, scale, seed}));
  };
  if (single) make(float{});
  else make(double{});
  return loss;
}

NativeLoss make_quadratic(const py::array& a, const py::array& b, double noise, std::uint64_t seed) {
  require_dims(a, "a", 2);
  NativeLoss loss;
  loss.keep = {a, b};
  dispatch_float(a, "a", [&](auto tag) {
    using T = decltype(tag);
    const T *a_ = require<T>(a, "a", shape_of(a)), *b_ = require<T>(b, "b", shape_of(a));
    loss.put(kernels<T>().make_quadratic_loss({a_, b_, a.shape(0), a.shape(1), noise, seed}));
  });
  return loss;
}

/// Gradients of the workers `workers` at their models (n, d), or at one model (d).
void gradients(NativeLoss& loss, const py::array& models, const std::vector<index_t>& workers, std::int64_t k,
               const py::array& out, int threads) {
  dispatch_float(out, "out", [&](auto tag) {
    using T = decltype(tag);
    Loss<T>& of = loss.get<T>();
    const auto n = static_cast<index_t>(workers.size());
    const index_t d = of.dim();
    const bool shared = models.ndim() == 1;
    const T* at = require<T>(models, "models", shared ? Shape{d} : Shape{n, d});
    T* to = require_out<T>(out, "out", {n, d});
    for (const index_t i : workers) require_below(i, of.workers(), "workers", "numbers");
    const int team = table().resolve_threads(threads, n * d * 32);
    const Unlocked unlocked;
    kernels<T>().gradients(of, at, shared, workers, k, to, team);
  });
}

template <class Binding>
void bind_linear(py::class_<NativeLoss>& loss) {
  loss.def_static(Binding::name, &make_linear<Binding>, "X"_a, "y"_a, "flipped"_a, "part"_a, "offset"_a, "poisoned"_a,
                  "outputs"_a, "scale"_a, "batch"_a, "seed"_a, "single"_a);
}

void bind_losses(py::module_& m) {
  py::class_<NativeLoss> loss(m, "Loss", "Where workers' gradients come from.");
  bind_linear<SoftmaxBinding>(loss);
  bind_linear<LogisticBinding>(loss);
  bind_linear<LeastSquaresBinding>(loss);
  loss.def_static("quadratic", &make_quadratic, "a"_a, "b"_a, "noise"_a, "seed"_a)
      .def_property_readonly("workers", &NativeLoss::workers)
      .def_property_readonly("dim", &NativeLoss::dim)
      .def("gradients", &gradients, "models"_a, "workers"_a, "k"_a, "out"_a, "threads"_a);
}

void bind_attacks(py::module_& m) {
  py::class_<Attack>(m, "Attack",
                     "What Byzantine workers send; choices.hpp says what each kind makes of value, worker, shift.")
      .def(py::init([](const std::string& kind, double value, index_t worker, double shift) {
             return Attack{named<AttackKind>(kind, "kind"), value, worker, shift};
           }),
           "kind"_a, "value"_a = 0.0, "worker"_a = 0, "shift"_a = 0.0)
      .def_property_readonly("kind", [](const Attack& attack) { return name_of(attack.kind); })
      .def_readonly("value", &Attack::value)
      .def_readonly("worker", &Attack::worker)
      .def_readonly("shift", &Attack::shift);
  m.def(
      "attack_messages",
      [](const Attack& attack, const py::array& honest, const std::vector<index_t>& byzantine, const py::array& x0,
         std::int64_t k, std::uint64_t seed, const py::array& out, int threads,
         const std::optional<std::vector<index_t>>& others) {
        dispatch_float(honest, "honest", [&](auto tag) {
          using T = decltype(tag);
          const auto all = matrix_rows<T>(honest, "honest");
          const index_t n = honest.shape(0), d = honest.shape(1), q = static_cast<index_t>(byzantine.size());
          std::vector<char> is_byzantine(static_cast<std::size_t>(n));
          const auto mark = [&](const std::vector<index_t>& attackers, const char* name) {
            for (const index_t j : attackers) {
              require_below(j, n, name, "numbers");
              is_byzantine[static_cast<std::size_t>(j)] = 1;
            }
          };
          mark(byzantine, "byzantine");
          if (others) mark(*others, "others");
          std::vector<const T*> regular;
          for (index_t i = 0; i < n; ++i)
            if (!is_byzantine[static_cast<std::size_t>(i)]) regular.push_back(all.view().row[i]);
          const T* x0_ = require<T>(x0, "x0", {d});
          T* to = require_out<T>(out, "out", {q, d});
          require_below(attack.worker, n, "attack", "a worker");
          const int team = table().resolve_threads(threads, q * d * 8);
          const Unlocked unlocked;
          kernels<T>().attack_messages(attack, all.view(), {regular.data(), static_cast<index_t>(regular.size()), d},
                                       byzantine.data(), q, x0_, k, seed, to, team);
        });
      },
      "attack"_a, "honest"_a, "byzantine"_a, "x0"_a, "k"_a, "seed"_a, "out"_a, "threads"_a, "others"_a = py::none(),
      "Messages of the Byzantine workers; others: further ones, which are not regular and forge nothing now.");
}

std::vector<bool> as_list(const std::unique_ptr<bool[]>& said, std::size_t count) {
  return std::vector<bool>(said.get(), said.get() + count);
}

void bind_messages(py::module_& m) {
  m.def(
      "acceptable",
      [](const py::array& messages, double bound) {
        return dispatch_float(messages, "messages", [&](auto tag) {
          using T = decltype(tag);
          const auto rows = matrix_rows<T>(messages, "messages");
          const auto count = static_cast<std::size_t>(messages.shape(0));
          const std::unique_ptr<bool[]> good(new bool[count]);
          const Unlocked unlocked;
          kernels<T>().acceptable_rows(rows.view(), bound, good.get());
          return as_list(good, count);
        });
      },
      "messages"_a, "bound"_a, "Which messages the master accepts: finite, and within [-bound, bound] if bound > 0.");
  m.def(
      "take_messages",
      [](const std::vector<std::tuple<py::array, index_t, py::bytes, index_t, index_t>>& envelopes,
         index_t header_bytes, double bound, const py::array& out, const py::array& present, const py::array& good) {
        require_dims(out, "out", 2);
        const index_t m = out.shape(0), d = out.shape(1);
        bool* came = require_out<bool>(present, "present", {m});
        bool* fine = require_out<bool>(good, "good", {m});
        return dispatch_float(out, "out", [&](auto tag) {
          using T = decltype(tag);
          T* to = require_out<T>(out, "out", {m, d});
          std::vector<Envelope> all;
          for (const auto& [buffer, count, header, first, rows] : envelopes) {
            const bool is_bytes = buffer.ndim() == 1 && buffer.itemsize() == 1 && count <= buffer.size();
            all.push_back({static_cast<const char*>(buffer.data()), is_bytes ? count : -1,
                           static_cast<std::string_view>(header), first, rows});
          }
          const std::unique_ptr<bool[]> fits(new bool[all.size()]);
          const Unlocked unlocked;
          kernels<T>().take_messages(all, header_bytes, bound, m, d, to, came, fine, fits.get());
          return as_list(fits, all.size());
        });
      },
      "envelopes"_a, "header_bytes"_a, "bound"_a, "out"_a, "present"_a, "good"_a,
      "Envelopes (buffer, bytes that came, header it must have, first row, rows): the numbers of those that are "
      "exactly\n"
      "this go to their rows of out, which become present, and good if acceptable. Which ones were.");
}

}  // namespace

void bind_training(py::module_& m) {
  bind_losses(m);
  bind_attacks(m);
  bind_messages(m);
}

}  // namespace byzadmm::bindings
