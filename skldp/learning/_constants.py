"""Tuned constants of the protocols, each with its unit, its derivation, and what breaks without it."""

# Fraction of people, or of a cohort. A level has an error of a few percent from some hundred people. Less: tails stay
# unseen. More: all other estimates lose people.
LEVELS_SHARE = 0.03
# Fraction of people in one step before the main one, such as a mean that later questions are relative to: its error is
# below that of the main step. Less: centres and whitenings are noise. More: the main step loses people.
PREPARATION_SHARE = 0.05
# Fraction of people for products before the main step, as many as the square of the terms. Less: directions that matter
# stay hidden.
PRODUCTS_SHARE = 0.3
# Half widths of a column, before it is reported: bounds lie three deviations away. Wrong by a factor of 4: the first
# radii cost people.
EXPECTED_DEVIATION = 1 / 3
# Largest prior variance of log odds over the bounds. Smaller: separable classes are learnt late. Larger: noise is
# fitted.
LOG_ODDS = 12.0
# Prior probability that the record tells nothing of the outcome, and part of the main variance between classes.
# Smaller: noise is fitted. Larger: few people learn nothing.
EVEN_CHANCE = 1 / 2
# Prior probability that classes are as frequent. Smaller: noise decides among the classes of balanced tables. Larger:
# rare classes are seen later.
EQUAL_CLASSES = 0.9
# Standard errors of a share or a spread that replaces what is expected: one chance in 16,000. Smaller: noise is taken
# for a tail. Larger: rare records are seen later.
DETECTED = 4.0
# Fraction of what an expected distribution loses to clipping that counts as bias, since its errors are nearly
# symmetric. Smaller: radii stay tight for more people.
USUAL_BIAS = 0.03
# Least mean variance of a column in a whitening. Smaller: rare values have more leverage. Larger: collinear columns are
# whitened less.
LEAST_VARIANCE = 0.3
# Sufficiency, and people for each number of a record, below which noise or sampling exceeds what a regression learns.
LEAST_SUFFICIENCY, LEAST_PER_NUMBER = 3.0, 5
