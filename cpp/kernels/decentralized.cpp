// Steps and rules of the nodes of a graph.
#include "byzadmm/decentralized.hpp"

#include "byzadmm/neighborhoods.hpp"
#include "table.hpp"

namespace byzadmm {

template <class T>
void fill_decentralized(Kernels<T>& k) {
  k.node_steps = node_steps<T>;
  k.edge_dual_steps = edge_dual_steps<T>;
  k.sign_pulls = sign_pulls<T>;
  k.scissor_neighbors = scissor_neighbors<T>;
  k.trim_neighbors = trim_neighbors<T>;
  k.subsequence_neighbors = subsequence_neighbors<T>;
}

template void fill_decentralized(Kernels<float>&);
template void fill_decentralized(Kernels<double>&);

}  // namespace byzadmm
