// Rules that choose, clip or mix rows.
#include "byzadmm/clipping.hpp"
#include "byzadmm/diameter.hpp"
#include "byzadmm/distances.hpp"
#include "byzadmm/filters.hpp"
#include "byzadmm/krum.hpp"
#include "byzadmm/medoid.hpp"
#include "byzadmm/mixing.hpp"
#include "byzadmm/projections.hpp"
#include "byzadmm/ranking.hpp"
#include "byzadmm/variance.hpp"
#include "table.hpp"

namespace byzadmm {

template <class T>
void fill_selection(Kernels<T>& k) {
  k.squared_distances = squared_distances<T>;
  k.medoid = medoid<T>;
  k.neighbor_means = neighbor_means<T>;
  k.centered_clip = centered_clip<T>;
  k.clip = clip<T>;
  k.lengths = lengths<T>;
  k.add_to_sums = add_to_sums<T>;
}

template void fill_selection(Kernels<float>&);
template void fill_selection(Kernels<double>&);

void fill_selection(Table& table) {
  table.krum_scores = krum_scores;
  table.bulyan_choice = bulyan_choice;
  table.least_scores = least_scores;
  table.nearest_rows = nearest_rows;
  table.projections = projections;
  table.least_diameter = least_diameter;
  table.least_variance = least_variance;
  table.filtered_weights = filtered_weights;
}

}  // namespace byzadmm
