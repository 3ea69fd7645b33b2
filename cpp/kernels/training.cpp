// Losses of linear models, the steps of the algorithms, random numbers, attacks, and the fused loops.
#include "byzadmm/admm.hpp"
#include "byzadmm/arrivals.hpp"
#include "byzadmm/attacks.hpp"
#include "byzadmm/hessian.hpp"
#include "byzadmm/losses.hpp"
#include "byzadmm/messages.hpp"
#include "byzadmm/philox.hpp"
#include "byzadmm/rsa.hpp"
#include "byzadmm/sgd.hpp"
#include "byzadmm/simulation.hpp"
#include "byzadmm/softmax.hpp"
#include "table.hpp"

namespace byzadmm {

namespace {

template <class F, class T>
constexpr LinearKernels<T, typename F::Target> kernels_of() {
  return {linear_gradient<F, T>, linear_loss<F, T>, linear_hessian_product<F, T>, make_linear_loss<F, T>};
}

template <class T>
std::unique_ptr<Loss<T>> make_quadratic_loss(const Quadratics<T>& of) {
  return std::make_unique<QuadraticLoss<T>>(of);
}

}  // namespace

template <class T>
void fill_training(Kernels<T>& k) {
  k.admm_worker_step = admm_worker_step<T>;
  k.admm_dual_step = admm_dual_step<T>;
  k.admm_answer = admm_answer<T>;
  k.admm_master_step = admm_master_step<T>;
  k.admm_hear = admm_hear<T>;
  k.admm_master_step_of_sums = admm_master_step_of_sums<T>;
  k.rsa_worker_step = rsa_worker_step<T>;
  k.rsa_master_step = rsa_master_step<T>;
  k.sgd_step = sgd_step<T>;
  k.momentum_step = momentum_step<T>;
  k.add_to_mean = add_to_mean<T>;
  k.zeno_direction = zeno_direction<T>;
  k.philox_normal = philox_normal;
  k.attack_messages = attack_messages<T>;
  k.acceptable_rows = acceptable_rows<T>;
  k.take_messages = take_messages<T>;
  k.samples_as = {samples_as<T, std::uint8_t>, samples_as<T, float>, samples_as<T, double>};
  k.softmax = kernels_of<Softmax, T>();
  k.logistic = kernels_of<Logistic, T>();
  k.least_squares = kernels_of<LeastSquares, T>();
  k.softmax_predict = softmax_predict<T>;
  k.linear_predict = linear_predict<T>;
  k.make_quadratic_loss = make_quadratic_loss<T>;
  k.gradients = gradients<T>;
  k.run_admm = run_admm<T>;
  k.run_rsa = run_rsa<T>;
  k.run_sgd = run_sgd<T>;
}

template void fill_training(Kernels<float>&);
template void fill_training(Kernels<double>&);

void fill_training(Table& table) { table.philox_integers = philox_integers; }

}  // namespace byzadmm
