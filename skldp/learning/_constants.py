"""Tuned constants of the protocols. Each has a unit, a derivation, and what breaks without it.

==================  =====  ===================  ======================================================================
name                value  unit                 derivation, and what breaks
==================  =====  ===================  ======================================================================
LEVELS_SHARE        .02    fraction of people   A level has an error of a few percent from some hundred people. Less:
                                                tails stay unseen. More: all other estimates lose people.
PREPARATION_SHARE   .1     fraction of people   Of one step before the main one: it costs a tenth of the main step's
                                                precision, and its own error is below that of the main step. Less:
                                                centres and whitenings are noise. More: the main step loses people.
PRODUCTS_SHARE      .25    fraction of people   Of products before the main step, which are as many as the square of
                                                the terms. Less: directions that matter stay hidden.
EQUAL_CLASSES       .9     prior probability    That classes are as frequent. Smaller: noise decides among the classes
                                                of balanced tables. Larger: rare classes are seen later.
MAIN_DIFFERENCE     .5     fraction of the      Expected part of the variance between classes in the main public
                           variance             direction. Smaller: fewer directions are reported. Larger: more noise.
==================  =====  ===================  ======================================================================
"""

LEVELS_SHARE = 0.02
PREPARATION_SHARE = 0.1
PRODUCTS_SHARE = 0.25
EQUAL_CLASSES = 0.9
MAIN_DIFFERENCE = 0.5
