"""Tuned constants of the protocols. Each has a unit, a derivation, and what breaks without it.

==================  =====  ===================  ======================================================================
name                value  unit                 derivation, and what breaks
==================  =====  ===================  ======================================================================
LEVELS_SHARE        .03    fraction of people   A level has an error of a few percent from some hundred people. Less:
                           or of a cohort       tails stay unseen. More: all other estimates lose people.
PREPARATION_SHARE   .05    fraction of people   Of one step before the main one, such as a mean that later questions
                                                are relative to: its error is below that of the main step. Less:
                                                centres and whitenings are noise. More: the main step loses people.
PRODUCTS_SHARE      .3     fraction of people   Of products before the main step, which are as many as the square of
                                                the terms. Less: directions that matter stay hidden.
EXPECTED_DEVIATION  1/3    half width           Of a column, before it is reported: bounds lie three deviations away.
                                                Wrong by a factor of 4: the first radii cost people.
LOG_ODDS            12     squared logits       Largest prior variance of log odds over the bounds. Smaller:
                                                separable classes are learnt late. Larger: noise is fitted.
EVEN_CHANCE         1/2    prior probability    Of what is not known before: that the record tells nothing of the
                                                outcome, and the part of the main variance that lies between classes.
                                                Smaller: noise is fitted. Larger: few people learn nothing.
EQUAL_CLASSES       .9     prior probability    That classes are as frequent. Smaller: noise decides among the classes
                                                of balanced tables. Larger: rare classes are seen later.
DETECTED            4      standard errors      Of a share or a spread that replaces what is expected: one chance in
                                                16,000. Smaller: noise is taken for a tail. Larger: rare records are
                                                seen later.
USUAL_BIAS          .03    fraction             Of what an expected distribution loses to clipping, since its errors
                                                are nearly symmetric. Smaller: radii stay tight for more people.
LEAST_VARIANCE      .3     mean variance        Of a column in a whitening. Smaller: rare values have more leverage.
                                                Larger: collinear columns are whitened less.
LEAST_SUFFICIENCY   3      sufficiency          Below it, noise exceeds what a regression can learn.
LEAST_PER_NUMBER    5      people               For each number of a record: below it, sampling error exceeds it.
==================  =====  ===================  ======================================================================
"""

LEVELS_SHARE = 0.03
PREPARATION_SHARE = 0.05
PRODUCTS_SHARE = 0.3
EXPECTED_DEVIATION = 1 / 3
LOG_ODDS = 12.0
EVEN_CHANCE = 1 / 2
EQUAL_CLASSES = 0.9
DETECTED = 4.0
USUAL_BIAS = 0.03
LEAST_VARIANCE = 0.3
LEAST_SUFFICIENCY = 3.0
LEAST_PER_NUMBER = 5
