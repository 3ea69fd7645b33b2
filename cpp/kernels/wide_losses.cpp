// Losses of linear models with the vectors of AVX-512, for models of many features (`benchmarks/isa.py`).
#include <utility>

#include "byzadmm/hessian.hpp"
#include "byzadmm/losses.hpp"
#include "byzadmm/softmax.hpp"
#include "table.hpp"

namespace byzadmm {

namespace {

/// With fewer features the last vector of a row, mostly empty, costs more than the others save.
constexpr index_t kManyFeatures = 128;

template <class T, class... Rest>
index_t features_of(const LinearModel<T>& model, const Rest&...) {
  return model.features;
}
template <class X>
index_t features_of(const Samples<X>& samples) {
  return samples.d;
}
template <class T, class Target>
index_t features_of(const SharedSamples<T, Target>& all) {
  return all.samples.d;
}

/// Here, or for few features what was in its place.
template <auto Here, class Function>
struct ByFeatures;
template <auto Here, class R, class... Arguments>
struct ByFeatures<Here, R (*)(Arguments...)> {
  static inline R (*before)(Arguments...) = nullptr;
  static R call(Arguments... given) {
    return (features_of(given...) < kManyFeatures ? before : Here)(std::forward<Arguments>(given)...);
  }
};

template <auto Here, class Function>
void put(Function& place) {
  ByFeatures<Here, Function>::before = std::exchange(place, &ByFeatures<Here, Function>::call);
}

template <class F, class T>
void put_kernels(LinearKernels<T, typename F::Target>& of) {
  put<linear_gradient<F, T>>(of.gradient);
  put<linear_loss<F, T>>(of.loss);
  put<linear_hessian_product<F, T>>(of.hessian_product);
  put<make_linear_loss<F, T>>(of.make);
}

}  // namespace

// All of them: a view of samples, and what reads it, are of one module.
template <class T>
void fill_wide_losses(Kernels<T>& k) {
  put<samples_as<T, std::uint8_t>>(std::get<0>(k.samples_as));
  put<samples_as<T, float>>(std::get<1>(k.samples_as));
  put<samples_as<T, double>>(std::get<2>(k.samples_as));
  put_kernels<Softmax>(k.softmax);
  put_kernels<Logistic>(k.logistic);
  put_kernels<LeastSquares>(k.least_squares);
  put<softmax_predict<T>>(k.softmax_predict);
  put<linear_predict<T>>(k.linear_predict);
}

template void fill_wide_losses(Kernels<float>&);
template void fill_wide_losses(Kernels<double>&);

}  // namespace byzadmm
