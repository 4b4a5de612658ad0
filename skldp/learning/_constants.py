"""Tuned constants of the protocols, each with its unit, its derivation, and what breaks without it."""

# Fraction of people, or of a cohort, for a step besides the main ones: levels, centres, shares of classes. Some hundred
# people report them with errors of a few percent. Less: tails stay unseen, and centres are noise. More: the main steps
# lose people.
PREPARATION_SHARE = 0.03
# Fraction of people for what the main step depends on: products before gradients; levels and means besides products.
# Less: directions that matter stay hidden. More: the main step loses people.
PRODUCTS_SHARE = 0.3
# Cohorts of gradients, and at most so many of products. Fewer: the model at which people report is far from the last
# one, and collinear columns stay hidden. More: each has more noise.
N_COHORTS = 20
# Half widths of a column, before it is reported: bounds lie three deviations away. Wrong by a factor of 4: the first
# radii cost people.
EXPECTED_DEVIATION = 1 / 3
# Largest prior variance of log odds over the bounds. Smaller: separable classes are learnt late. Larger: noise is
# fitted.
LOG_ODDS = 12.0
# Standard errors of a significant difference: one chance in 16,000. Smaller: noise is taken for a tail, or for
# something to learn. Larger: rare records are seen later, and more people are needed.
DETECTED = 4.0
# Fraction of what an expected distribution loses to clipping that counts as bias, since its errors are nearly
# symmetric, and of a standard error that a bias may be in intervals. Smaller: radii are wide, and so are intervals.
# Larger: radii stay tight for more people.
USUAL_BIAS = 0.03
# Least mean variance in a whitening, and prior variance of a whitened variance, which is about 1. Smaller: rare values
# have more leverage, and differences of columns are learnt late. Larger: collinear columns are whitened less, by noise.
LEAST_VARIANCE = 0.3
# Variance of a direction, relative to that of a column, below which columns are redundant: whitening leaves it small.
# Smaller: the errors of centres are enlarged with a direction that has nothing else. Larger: collinear columns that
# matter are learnt late.
REDUNDANT = 1e-3
