// What the kernels of one instruction set hand to the bindings: a table of pointers.
//
// The kernels are compiled once per instruction set, into a module of their own: templates of the standard library
// compiled for two of them would share one symbol, and the linker might keep the one that an old CPU cannot run. The
// bindings are compiled once, know the kernels by this table alone, and need none of their headers.
#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include "byzadmm/choices.hpp"
#include "byzadmm/loss.hpp"
#include "byzadmm/parallel.hpp"
#include "byzadmm/views.hpp"

namespace byzadmm {

/// The kernels of a loss of linear models (linear.hpp).
template <class T, class Y>
struct LinearKernels {
  using Target = Y;
  void (*gradient)(const LinearModel<T>&, const T* w, const SamplesAs<T>&, const Target* y, const std::int64_t* idx,
                   index_t m, index_t batch, T* out, int threads);
  double (*loss)(const LinearModel<T>&, const SamplesAs<T>&, const Target* y, const std::int64_t* idx, index_t batch,
                 int threads);
  void (*hessian_product)(const LinearModel<T>&, const T* w, const T* v, const SamplesAs<T>&, const std::int64_t* idx,
                          index_t m, index_t batch, T* out, int threads);
  std::unique_ptr<Loss<T>> (*make)(const SharedSamples<T, Target>&);
};

/// Every kernel on numbers of type T. The headers of cpp/include/byzadmm/ say what each computes.
template <class T>
struct Kernels {
  // rules, column by column
  bool (*mean)(Rows<T>, const double* weight, T* out, int threads);
  bool (*median)(Rows<T>, Even, T* out, int threads);
  bool (*trimmed_mean)(Rows<T>, index_t f, T* out, int threads);
  bool (*sign_majority)(Rows<T>, T* out, int threads);
  void (*closest_mean)(Rows<T>, const T* center, index_t k, T* out, int threads);
  void (*weighted_median)(Rows<T>, const double* weight, Even, T* out, int threads);
  void (*weighted_trimmed_mean)(Rows<T>, const double* weight, double cut, T* out, int threads);
  void (*nonfinite_rows)(Rows<T>, bool* bad, int threads);
  void (*mark_nan_columns)(Rows<T>, T* out, int threads);

  // rules by distances
  GeometricMedianInfo (*geometric_median)(Rows<T>, const double* weight, double tol, int max_iter, T* out,
                                          double* share, int threads);
  void (*squared_distances)(Rows<T>, double* squared, std::vector<std::int32_t>& exponent, bool* bad, int threads);
  index_t (*medoid)(Rows<T>, const SquaredDistances&, const double* weight, double* score, int threads);
  void (*neighbor_means)(Rows<T>, const index_t* neighbor, index_t count, index_t size, T* out, int threads);
  void (*centered_clip)(Rows<T>, double tau, int n_iter, T* v, double* factor, int threads);
  void (*lengths)(Rows<T>, const T* center, double* mantissa, std::int32_t* exponent, int threads);
  void (*clip)(Rows<T>, double max_norm, int exponent, T* out, double* norm, int threads);
  void (*add_to_sums)(Rows<T>, const index_t* worker, double factor, double* sums, index_t m, index_t center,
                      double* out, int threads);

  // redundant gradients
  void (*weighted_sum)(Rows<T>, const double* w, double total, T* out, int threads);
  void (*look_at_rows)(Rows<T>, const double* inner, index_t tile, const double* outer, double scale, double* out,
                       int threads);
  void (*majority_rows)(Rows<T>, const index_t* first, index_t groups, index_t votes, index_t* chosen, int threads);

  // steps
  void (*admm_worker_step)(const T* x, const T* g, const T* eta, const T* eta_prev, T alpha, T* out, index_t size,
                           int threads);
  void (*admm_dual_step)(const T* eta, const T* x, const T* x0, T beta, T lam, T* out, index_t m, index_t d,
                         int threads);
  void (*admm_answer)(T* x, T* g, T* eta, T* eta_prev, const T* x0, T alpha, T beta, T lam, index_t m, index_t d,
                      int threads);
  void (*admm_master_step)(const T* x0, Rows<T> eta, Rows<T> eta_prev, double alpha, double rho, T* out, int threads);
  void (*admm_hear)(const T* message, T* eta, T* eta_prev, double* total, double* change, index_t d);
  void (*admm_master_step_of_sums)(T* x0, const double* total, double* change, double alpha, double rho, index_t d);
  void (*rsa_worker_step)(const T* x, const T* g, const T* x0, T alpha, T lam, T* out, index_t m, index_t d,
                          int threads);
  void (*rsa_master_step)(const T* x0, Rows<T> messages, double alpha, double lam, double rho, T* out, int threads);
  void (*node_steps)(const T* base, const T* x, const T* g, const double* pull, const double* alpha, const double* rho,
                     T* out, index_t m, index_t d, int threads);
  void (*edge_dual_steps)(const T* x, Heard<T>, const bool* dictated, T beta, T lam, T* e, double* pull, int threads);
  void (*sign_pulls)(const T* x, Heard<T>, double lam, double* pull, int threads);
  void (*scissor_neighbors)(const T* own, Heard<T>, const double* weight, const double* own_weight, const index_t* f,
                            T* out, int threads);
  void (*trim_neighbors)(const T* own, Heard<T>, const index_t* f, T* out, int threads);
  void (*subsequence_neighbors)(const T* own, Heard<T>, const index_t* f, T* out, int threads);
  void (*sgd_step)(const T* x0, const T* direction, T alpha, T rho, T* out, index_t d, int threads);
  void (*momentum_step)(T* momentum, const T* g, T beta, index_t size, int threads);

  // messages as they arrive
  void (*add_to_mean)(T* mean, const T* message, index_t n, index_t d);
  bool (*zeno_direction)(const T* g, const double* v, double alpha, double rho, double eps, T* out, index_t d);

  // random numbers, attacks and messages
  void (*philox_normal)(const Stream&, T std, T* out, index_t size);
  void (*attack_messages)(const Attack&, Rows<T> honest, Rows<T> regular, const index_t* byzantine, index_t q,
                          const T* x0, std::int64_t k, std::uint64_t seed, T* out, int threads);
  void (*acceptable_rows)(Rows<T> messages, double bound, bool* good);
  void (*take_messages)(const std::vector<Envelope>&, index_t header_bytes, double bound, index_t m, index_t d, T* out,
                        bool* present, bool* good, bool* fits);

  // losses and training loops
  std::tuple<SamplesAs<T> (*)(Samples<std::uint8_t>), SamplesAs<T> (*)(Samples<float>),
             SamplesAs<T> (*)(Samples<double>)>
      samples_as;
  LinearKernels<T, std::int64_t> softmax, logistic;
  LinearKernels<T, double> least_squares;
  void (*softmax_predict)(const LinearModel<T>&, const SamplesAs<T>&, std::int64_t* out, int threads);
  void (*linear_predict)(const LinearModel<T>&, const SamplesAs<T>&, T* out, int threads);
  std::unique_ptr<Loss<T>> (*make_quadratic_loss)(const Quadratics<T>&);
  void (*gradients)(Loss<T>&, const T* models, bool shared, const std::vector<index_t>& workers, std::int64_t k, T* out,
                    int threads);
  void (*run_admm)(Loss<T>&, AdmmState<T>, const AdmmParameters&, const Participants&, const Schedule&);
  void (*run_rsa)(Loss<T>&, RsaState<T>, const RsaParameters&, const Participants&, const Schedule&);
  void (*run_sgd)(Loss<T>&, SgdState<T>, const Direction<T>&, const SgdParameters&, const Participants&,
                  const Schedule&);
};

struct Table {
  /// A capsule of another version has another name, and is refused.
  static constexpr const char* kCapsule = "byzadmm.kernels." BYZADMM_VERSION;

  std::tuple<Kernels<float>, Kernels<double>> of;

  void (*krum_scores)(const SquaredDistances&, index_t neighbors, const double* weight, double mass, double* score,
                      std::int32_t* exponent, int threads);
  void (*bulyan_choice)(const SquaredDistances&, index_t f, index_t count, index_t* chosen);
  void (*least_scores)(const double* score, const std::int32_t* exponent, index_t n, index_t count, index_t* chosen);
  void (*nearest_rows)(const SquaredDistances&, index_t count, index_t* neighbor, int threads);
  int (*projections)(const SquaredDistances&, double* score);
  bool (*least_diameter)(const SquaredDistances&, index_t f, index_t* chosen);
  void (*least_variance)(const SquaredDistances&, index_t f, index_t* chosen);
  int (*filtered_weights)(const SquaredDistances&, index_t f, double crumb, double* weight);
  void (*philox_integers)(const Stream&, std::uint64_t high, std::int64_t* out, index_t size);

  // threads (parallel.hpp): each module of kernels has a state of its own; that of AVX-512 has the one of AVX2
  int (*max_threads)();
  int (*resolve_threads)(int requested, index_t work);
  Watched& (*watched)();
  bool& (*in_forked_child)();

  const char* isa;
  int vector_bytes;
  bool openmp;
};

// Shared between the files of a module: the geometric median falls back on the median, which coordinatewise.cpp has.
template <class T>
bool median(Rows<T>, Even, T* out, int threads);
extern template bool median<float>(Rows<float>, Even, float*, int);
extern template bool median<double>(Rows<double>, Even, double*, int);

// Each fills its part of the table; kernels/<part>.cpp instantiates what it names.
template <class T>
void fill_coordinatewise(Kernels<T>&);
template <class T>
void fill_geometric(Kernels<T>&);
template <class T>
void fill_selection(Kernels<T>&);
template <class T>
void fill_training(Kernels<T>&);
template <class T>
void fill_coding(Kernels<T>&);
template <class T>
void fill_decentralized(Kernels<T>&);
void fill_selection(Table&);
void fill_training(Table&);

// Over a table that is full: wide_rules.cpp.
template <class T>
void fill_wide(Kernels<T>&);

}  // namespace byzadmm
