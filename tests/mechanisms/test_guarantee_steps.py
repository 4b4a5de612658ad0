"""The table of what a guarantee adds up says what its sentence says, and adds up to its epsilon."""

import json
import math

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldp import LabelPrivateClassifier, LabelRR, NumericPrivatizer, PrivacyGuarantee, privacy_guarantee
from skldp.domains._columns import Columns
from skldp.mechanisms import Column
from skldp.mechanisms._guarantee import GuaranteeStep
from skldp.mechanisms._record import MixedRecord

X = np.linspace(0, 1, 24).reshape(8, 3)
Y = np.array([0, 1] * 4)


def release(epsilon):
    return NumericPrivatizer(epsilon=epsilon, bounds=(0, 1))


def test_a_single_release_is_its_own_step():
    guarantee = PrivacyGuarantee(1.5, 1e-6, stated=2.0, basis="by a theorem")
    (step,) = guarantee.steps
    assert step == GuaranteeStep("", 1.5, 1e-6, stated=2.0, basis="by a theorem")
    assert guarantee.parts == ()


def test_a_sum_lists_its_steps_and_its_sentence_is_theirs():
    one, two, three = PrivacyGuarantee(1.0), PrivacyGuarantee(2.0, basis="by a theorem"), PrivacyGuarantee(4.0)
    for total in ((one + two) + three, one + (two + three)):
        assert [step.epsilon for step in total.steps] == [1.0, 2.0, 4.0]
        assert total.basis == "sum of (exact), (by a theorem) and (exact)"
    assert (one + one).basis == "2 releases, each exact"


def test_what_a_sum_says_beside_its_steps_is_not_lost():
    noted = PrivacyGuarantee(3.0, basis="a note", parts=(GuaranteeStep("a", 1.0), GuaranteeStep("b", 2.0)))
    assert len(noted.steps) == 2
    assert [step.basis for step in (noted + PrivacyGuarantee(1.0)).steps] == ["a note", "exact"]


def test_a_pipeline_names_its_steps(fixed_noise):
    columns = make_column_transformer((release(3.0), [0]), (release(3.0), [1]), (release(1.0), [2]))
    private = LabelPrivateClassifier(LogisticRegression(), label_mechanism=LabelRR(2.0, classes=[0, 1]))
    guarantee = privacy_guarantee(make_pipeline(columns, StandardScaler(), private).fit(X, Y))
    assert [step.name for step in guarantee.steps] == [
        "columntransformer__numericprivatizer-1",
        "columntransformer__numericprivatizer-2",
        "columntransformer__numericprivatizer-3",
        "labelprivateclassifier",
    ]
    assert [step.stated for step in guarantee.steps] == [3.0, 3.0, 1.0, 2.0]
    assert guarantee.basis.startswith("sum of (2 releases, each exact, from the sampled integers), (exact, from the")
    frame = guarantee.to_frame()
    assert math.isclose(frame["epsilon"].sum(), guarantee.epsilon)
    shown = guarantee._repr_html_()
    assert all(step.name in shown for step in guarantee.steps)


def test_what_makes_it_infinite_is_a_step():
    passed = make_column_transformer((release(3.0), [0]), ("passthrough", [1])).fit(X)
    unprotected, released = privacy_guarantee(passed).steps
    assert math.isinf(unprotected.epsilon)
    assert unprotected.basis == "columns of passthrough pass unprotected"
    assert released.stated == 3.0


def test_a_table_states_each_column():
    record = MixedRecord(Columns.of({"age": Column(0, 100), "pay": Column(0, 5)}), (3.0, 1.0))
    guarantee = record.guarantee()
    assert [(step.name, step.stated) for step in guarantee.steps] == [("age", 3.0), ("pay", 1.0)]
    assert guarantee.basis.startswith("sum over 2 columns: age 3")


def test_json_is_strict():
    passed = make_column_transformer((release(3.0), [0]), ("passthrough", [1])).fit(X)
    guarantee = privacy_guarantee(passed)

    def refuse(name):
        raise AssertionError(name)

    read = json.loads(guarantee.to_json(), parse_constant=refuse)
    assert float(read["epsilon"]) == math.inf
    assert [one["name"] for one in read["steps"]] == [step.name for step in guarantee.steps]
    known = PrivacyGuarantee(1.5, stated=1.0, figures=(("corrected", 2.0),))
    assert json.loads(known.to_json()) == known.to_dict()


@pytest.mark.parametrize("change", [{"epsilon": 4.0}, {"epsilon": math.inf}, {"delta": 0.5}])
def test_steps_of_another_guarantee_are_left_out(change):
    """A sum behind a shuffler, or of which the domain was learnt, kept the steps of what it was made of."""
    from dataclasses import replace

    total = PrivacyGuarantee(1.0) + PrivacyGuarantee(2.0)
    changed = replace(total, **change)
    assert len(total.steps) == 2
    (step,) = changed.steps
    assert (step.epsilon, step.delta) == (changed.epsilon, changed.delta)
