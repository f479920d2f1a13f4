// Decides from noisy times which candidate is the fastest.
#pragma once

#include <span>
#include <vector>

namespace tilewright {

/// The middle of the values, the mean of the two middle ones where their number is even; infinity where there are none.
double median(std::vector<double> values);

/// The middle distance from the median; 0 where there are fewer than three values.
double median_deviation(const std::vector<double> &values);

/// `rounds[c]` holds seconds of candidate c, one for each round in which all candidates ran in turn. The index of the fastest by the median
/// over the rounds of its time as a share of candidate 0's in the same round, which a drift of the machine does not change. Candidate 0
/// keeps its place unless another is faster by `margin` and by twice the deviation of that share. Candidates without times are never chosen
/// while others have some; without any, 0.
int choose_fastest(std::span<const std::vector<double>> rounds, double margin = 0.01);

}  // namespace tilewright
