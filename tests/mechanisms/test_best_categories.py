"""The best mechanism for a column of categories: what is chosen, and for each column of a record on its own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.categorical._one_hot import (
    CATEGORICAL_MECHANISMS,
    OneHotLocalHashing,
    OneHotRandomizedResponse,
    SubsetSelection,
    best_categorical_mechanism,
)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 10), st.integers(1, 5000))
def test_nothing_shorter_is_as_good_and_nothing_is_much_better(epsilon, k):
    name, best = best_categorical_mechanism(epsilon, k)
    all_of_them = {other: CategoricalRecord(epsilon, (k,), other).parts[0] for other in CATEGORICAL_MECHANISMS}
    assert best == all_of_them[name]
    least = min(one.worst_case_variance for one in all_of_them.values())
    assert best.worst_case_variance <= 1.05 * least
    for one in all_of_them.values():
        assert one.worst_case_variance > 1.05 * least or one.report_bits >= best.report_bits


def test_each_column_of_a_record_has_its_own():
    record = CategoricalRecord(3.0, (2, 10, 1024), "best")
    assert [type(one) for one in record.parts] == [OneHotRandomizedResponse, SubsetSelection, OneHotLocalHashing]
    assert record.guarantee().epsilon <= 3.0
    assert record.guarantee().epsilon == pytest.approx(3.0, rel=1e-9)


def test_a_single_category_is_sent_in_no_bits():
    assert best_categorical_mechanism(1.0, 1)[1].report_bits == 0


def test_reports_of_many_categories_stay_short():
    name, best = best_categorical_mechanism(1.0, 2**20)
    assert (name, best.report_bits) == ("hashing", 23)
