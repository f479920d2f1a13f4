// Decides from noisy times which candidate is the fastest.
#pragma once

#include <span>
#include <vector>

namespace tilewright {

/// The middle of the values, the mean of the two middle ones where their number is even; infinity where there are none.
double median(std::vector<double> values);

/// `rounds[c]` holds seconds of candidate c, one for each round in which all candidates ran in turn, so that a drift of the machine falls on
/// all alike. The index of the fastest: candidate 0 keeps its place unless another's median is smaller by `margin` (a share of it) and it
/// was faster in more than half of the rounds. Candidates without times are never chosen; without any, 0.
int choose_fastest(std::span<const std::vector<double>> rounds, double margin = 0.02);

}  // namespace tilewright
