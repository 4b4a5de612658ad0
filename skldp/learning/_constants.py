"""Tuned constants of the protocols, each with its unit, its derivation, and what breaks without it."""

import math

# Fraction of people, or of a cohort. A level has an error of a few percent from some hundred people. Less: tails stay
# unseen. More: all other estimates lose people.
LEVELS_SHARE = 0.03
# Fraction of people in one step besides the main one, such as a mean that later questions are relative to: its error is
# below that of the main step. Less: centres and mean residuals are noise. More: the main step loses people.
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
# Standard errors of a share, spread or mean that replaces what is expected: one chance in 16,000. Smaller: noise is
# taken for a tail. Larger: rare records are seen later.
DETECTED = 4.0
# Fraction of what an expected distribution loses to clipping that counts as bias, since its errors are nearly
# symmetric. Smaller: radii stay tight for more people.
USUAL_BIAS = 0.03
# Least mean variance of a column in a whitening. Smaller: rare values have more leverage. Larger: collinear columns are
# whitened less.
LEAST_VARIANCE = 0.3
# Sufficiency, and people for each number of a record, below which noise or sampling exceeds what a regression learns.
LEAST_SUFFICIENCY, LEAST_PER_NUMBER = 3.0, 5
# Cohorts of gradients. Fewer: the model at which people report is far from the last one. More: each has more noise.
N_COHORTS = 20
# Most cohorts of products, each of which whitens the next one, and the squared largest eigenvalue of the noise of one.
# Smaller: cohorts are few, and directions stay hidden. Larger: features are whitened by noise.
MOST_STAGES, NOISE_OF_STAGE = 6, 3.0
# Prior variances of a correlation and of a square of whitened terms, whose second moments are about 1. Smaller:
# correlated features are learnt late. Larger: their noise enters the model.
CORRELATION, SQUARE = 0.02, 0.25
# Deviation of a norm's log scale about the expected one. Smaller: wide bounds mislead radii. Larger: noise does.
LOG_SPREAD = math.log(2)
# Most degrees of freedom of an expected norm, since features may be correlated. Fewer: long tails are expected.
MOST_DEGREES = 4

# Moments: fraction of a cohort that reports levels of products. Less: whitening enlarges what is cut off.
SHARE_OF_LEVELS = 0.2
# Moments: the constant, in units of the root of the number of terms. Smaller: means are noise. Larger: products are.
CONSTANT = 0.45
# Moments and discriminant: sufficiency below which the noise of products, or of the tensor, exceeds their signal.
SUFFICIENCY_OF_MOMENTS, SUFFICIENCY_OF_DISCRIMINANT = 8.0, 0.5
# Discriminant: sufficiency for each term from which people report products. Smaller: they take people from the means.
PRODUCTS_PAY = 100.0

# Inference: cohorts of the two Newton steps, whose scatter is their error: 48 degrees of freedom widen intervals by 3%.
# Fewer in the first step: the second one starts far from the truth. More: it takes back less.
N_NEWTON_COHORTS = 10, 40
# Inference: largest noise of second moments of 1. At the typical norm of products: above it, hardly any table has
# intervals. At their radius: at a half, second moments of 1 stand out of the noise by two of their own errors.
MOST_NOISE = 1 / 8, 1 / 2
# Inference: largest bias of a gradient, in standard errors of its noise, which intervals count: the smaller, the wider.
GRADIENT_CUT = 0.05
