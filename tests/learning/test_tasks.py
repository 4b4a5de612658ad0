"""Tasks and reports: what they compute, that they add up to the bit, and that hostile ones are refused."""

import base64
import hashlib
import json
import math
import struct

import numpy as np
import pytest

from skldp.exceptions import BudgetExhaustedError
from skldp.learning import Person, Report
from skldp.learning._tasks import Task
from skldp.learning._vectors import contrasts, symmetric_matrix
from skldp.mechanisms import noise_from
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.categorical._one_hot import SubsetSelection
from skldp.mechanisms.vector._privunit_products import PrivUnitProducts

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-1, 3, (300, 2)), RNG.uniform(0, 10, 300)
BOUNDS = {"low": (-1.0, 0.0, 0.0), "high": (3.0, 2.0, 10.0)}
MATRIX = ((0.5, 1.0, 0.0, 0.25), (0.0, 0.0, -2.0, 1.0), (0.1, 0.2, 0.3, 0.4))


def task(form="linear", answer="vector", radius=4.0, epsilon=2.0, matrix=MATRIX):
    return Task(epsilon, **BOUNDS, form=form, matrix=matrix, answer=answer, radius=radius)


def naive(form):
    """What is made of every record, from the definition."""
    vectors = []
    for x, y in zip(X, Y, strict=True):
        z = [1.0]
        for value, low, high in zip([*x, y], BOUNDS["low"], BOUNDS["high"], strict=True):
            z.append((2 * min(max(value, low), high) - low - high) / (high - low))
        u = [sum(a * b for a, b in zip(row, z, strict=True)) for row in MATRIX]
        if form == "products":
            u = [u[i] * u[j] * (1 if i == j else math.sqrt(2)) for i in range(3) for j in range(i, 3)]
        elif form == "gradient":
            u = [one * u[-1] for one in u[:-1]]
        elif form == "squares":
            u = [one**2 for one in u]
        vectors.append(u)
    return np.array(vectors)


def clipped(vectors, radius=4.0):
    return vectors * np.minimum(1, radius / np.linalg.norm(vectors, axis=1))[:, None]


@pytest.mark.parametrize("form", ["linear", "squares", "products", "gradient"])
def test_vectors_are_what_a_task_says(form):
    asked = task(form)
    # Products are made of the vector when it is released.
    given = (naive("linear"), math.sqrt(asked.radius)) if form == "products" else (naive(form), asked.radius)
    np.testing.assert_allclose(asked.encode(X, Y) * given[1], given[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(asked._mechanism.encode(given[0] / given[1]).rows * asked.radius, clipped(naive(form)))
    norms = np.linalg.norm(naive(form), axis=1)
    expected = [min(max(math.log2(4.0 / norm), 0.0), 19.0) for norm in norms]
    np.testing.assert_allclose(task(form, "levels").encode(X, Y)[:, 0], expected, rtol=0, atol=1e-12)


CLASS_MATRIX = (*MATRIX[:2], (0.3, 1.0, 0.0, 0.0), (0.0, 0.0, 0.5, 0.0), (0.0, -1.0, 1.0, 0.0))
CLASS_BOUNDS = {"low": (-1.0, 0.0, 0.0), "high": (3.0, 2.0, 2.0)}


def about_classes(answer="vector", matrix=CLASS_MATRIX, n_classes=3, **changes):
    settings = CLASS_BOUNDS | {"epsilon": 2.0, "form": "class_gradient", "radius": 4.0} | changes
    return Task(matrix=matrix, answer=answer, n_classes=n_classes, **settings)


def test_class_gradients_are_those_of_the_log_likelihood():
    asked = about_classes()
    classes = np.arange(300) % 3
    inside = asked._box.clip(np.column_stack([X, classes])).rows
    columns = contrasts(3)
    np.testing.assert_allclose(columns.T @ columns, np.eye(2), atol=1e-15)
    np.testing.assert_allclose(columns.sum(axis=0), 0, atol=1e-15)
    matrix = np.array(CLASS_MATRIX)
    for row, given, code in zip(asked.encode(X, classes) * 4.0, inside, classes, strict=True):
        z = np.append(1.0, (given - [1.0, 1.0, 1.0]) / [2.0, 1.0, 1.0])
        w, logits = matrix[:2] @ z, matrix[2:] @ z

        def log_likelihood(parameters, w=w, logits=logits, code=code):
            moved = logits + columns @ parameters.reshape(2, 2) @ w
            return moved[code] - np.log(np.exp(moved).sum())

        # By central differences.
        steps = 1e-5 * np.eye(4)
        slopes = [(log_likelihood(step) - log_likelihood(-step)) / 2e-5 for step in steps]
        np.testing.assert_allclose(row, slopes, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_classes": 1},
        {"n_classes": True},
        {"n_classes": 2},
        {"n_classes": 5},
        {"high": (3.0, 2.0, 3.0)},
        {"form": "linear"},
        {"matrix": CLASS_MATRIX[:3]},
    ],
)
def test_hostile_tasks_about_classes_are_refused(changes):
    with pytest.raises(ValueError, match="task"):
        about_classes(**changes)


def test_products_have_the_square_of_the_norm_and_come_back_as_a_matrix():
    u, products = naive("linear"), naive("products")
    np.testing.assert_allclose(np.linalg.norm(products, axis=1), (u**2).sum(axis=1))
    np.testing.assert_allclose(symmetric_matrix(products[0], 3), np.outer(u[0], u[0]), atol=1e-12)


@pytest.mark.parametrize(
    ("form", "answer"),
    [("products", "vector"), ("squares", "vector"), ("gradient", "levels"), ("class_gradient", "levels")],
)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_reports_are_the_same_to_the_bit_in_any_order(form, answer, epsilon):
    make = about_classes if form == "class_gradient" else task
    asked = make(form=form, answer=answer, epsilon=epsilon)
    reports = [
        asked.release(X[i : i + 50], Y[i : i + 50], Noise(bytes([i]) * 32, secure=False)) for i in range(0, 250, 50)
    ]
    forward, backward = Report.total(reports), Report.total(reports[::-1])
    assert forward == backward == Report.total([reports[2], Report.total(reports[:2]), Report.total(reports[3:])])
    assert forward.n_people == 250
    assert Report.from_json(forward.to_json()) == forward
    np.testing.assert_array_equal(asked.mean(forward), asked.mean(backward))
    asked.check(forward)


def test_a_report_is_the_sum_of_what_each_released():
    asked, law = task("products"), PrivUnitProducts(3, 2.0)
    key = b"k" * 32
    report = asked.release(X, Y, Noise(key, secure=False))
    stream = Noise(key, secure=False).split([slice(None)])[0]
    released = law.release(asked.encode(X, Y), stream).rows
    assert [int(one) for one in np.rint(released.sum(axis=0) / law.step)] == list(report.sums)
    np.testing.assert_allclose(asked.mean(report), released.mean(axis=0) * asked.radius)


def test_a_report_of_levels_counts_the_sets_with_each_level():
    asked = task("products", "levels")
    report = asked.release(X, Y, Noise(b"k" * 32, secure=False))
    rounding, stream = Noise(b"k" * 32, secure=False).split([slice(None)])[0].spawn(2)
    levels = asked.encode(X, Y)
    codes = np.where(rounding.uniform(levels.shape) < np.ceil(levels) - levels, np.floor(levels), np.ceil(levels))
    released = SubsetSelection(2.0, 20).release(codes.astype(int), stream).rows
    assert report.sums == tuple(map(int, released.sum(axis=0)))


@pytest.mark.parametrize("epsilon", [0.7, 3.0])
@pytest.mark.parametrize("answer", ["vector", "levels", "number"])
def test_means_are_unbiased(answer, epsilon):
    matrix = MATRIX if answer != "number" else MATRIX[:1]
    asked = task("linear", answer, epsilon=epsilon, matrix=matrix)
    n = 40_000
    report = asked.release(np.tile(X[:1], (n, 1)), np.tile(Y[:1], n), Noise(bytes(32), secure=False))
    u = naive("linear")[0]
    mean = asked.mean(report)
    if answer == "vector":
        # Along the vector there is less noise than across it.
        assert (np.abs(mean - u) < 5.5 * asked.standard_error(n)).all()
    elif answer == "number":
        assert abs(mean[0] - u[0]) < 5.5 * 4.0 * math.sqrt(asked._mechanism.worst_variance / n)
    else:
        level = math.log2(4.0 / np.linalg.norm(u))
        # The shares of the two neighbours are the chances of rounding to them.
        expected = np.maximum(1 - np.abs(np.arange(20) - level), 0)
        mechanism = SubsetSelection(epsilon, 20)
        chances = mechanism.q + (mechanism.p - mechanism.q) * expected
        errors = np.sqrt(chances * (1 - chances) / n) / (mechanism.p - mechanism.q)
        assert (np.abs(mean - expected) < 5.5 * errors).all()
        assert asked.standard_error(n) == pytest.approx(errors[expected == 0].max())


@pytest.mark.parametrize("epsilon", [1e-4, 0.3, 1.0, 1.29, 1.31, 7.0, 30.0])
@pytest.mark.parametrize("answer", ["vector", "levels"])
def test_a_release_costs_no_more_than_its_task_says(epsilon, answer):
    cost = task("gradient", answer, epsilon=epsilon).guarantee().epsilon
    assert cost <= epsilon
    assert cost == pytest.approx(min(epsilon, 30.0), rel=1e-3) or epsilon > 24


def as_text(**changes):
    return json.dumps(json.loads(task("gradient").to_json()) | changes)


def packed(rows):
    """Numbers as a task's document writes them, by another way than the library's."""
    return base64.b64encode(b"".join(struct.pack("<d", one) for row in rows for one in row)).decode()


def test_a_document_is_written_and_named_as_it_is_described():
    asked = task("gradient", radius=4.5)
    content = {
        "answer": "vector", "epsilon": 2.0, "form": "gradient", "high": [3.0, 2.0, 10.0], "low": [-1.0, 0.0, 0.0],
        "matrix": packed(MATRIX), "n_classes": 0, "radius": 4.5, "skldp": "task", "version": 4,
    }  # fmt: skip
    text = json.dumps(content, separators=(",", ":"))
    assert asked.to_json() == text
    assert asked.hash == hashlib.sha256(text.encode()).hexdigest()
    assert Task.from_json(text) == asked


HOSTILE = [
    "",
    "[]",
    "null",
    "[" * 100_000,
    as_text(version=1),
    as_text(version=1, matrix=MATRIX),
    as_text(version=2),
    # A version 2 document has the field.
    as_text(version=2, least=0.0),
    # In version 3 products were released as any vector.
    as_text(version=3),
    as_text(version=5),
    as_text(version=4.0),
    # Of these two, a reader may take the first and another one the last.
    as_text().replace('"epsilon": 2.0', '"epsilon": 2.0, "epsilon": 1.0'),
    as_text(skldp="report"),
    as_text(more=1),
    as_text(epsilon=-1.0),
    as_text(epsilon=True),
    as_text(epsilon="1"),
    as_text(epsilon=None),
    as_text(epsilon=10**400),
    as_text(epsilon=math.nan),
    as_text(epsilon=math.inf),
    as_text(epsilon=1e-9),
    as_text().replace("2.0", "1e999", 1),
    as_text(radius=0.0),
    as_text(radius=1e-40),
    as_text(radius=math.inf),
    as_text(least=0.0),
    as_text(answer="levels", least=0.5),
    as_text(answer="log_norm"),
    as_text(answer="levels", radius=0.0),
    as_text(answer="levels", radius=-4.0),
    as_text(answer="levels", radius=math.nan),
    as_text(answer="levels", epsilon=1e-9),
    as_text(answer="levels", epsilon=1e7),
    as_text(answer=["levels"]),
    as_text(answer="levels", matrix=packed([[1.0, 2.0, 3.0, math.nan]] * 3)),
    as_text(answer="rows"),
    as_text(form="raw"),
    as_text(form=["linear"]),
    as_text(matrix=""),
    as_text(matrix=MATRIX),
    as_text(matrix=packed([[1.0]])),
    as_text(matrix=packed([[1.0, 2.0, 3.0, math.nan]] * 3)),
    as_text(matrix=packed([[1.0, 2.0, 3.0, math.inf]] * 3)),
    as_text(matrix=packed([[1.0, 2.0, 3.0, 1e200]] * 3)),
    as_text(matrix=packed([[1.0, 2.0, 3.0, -1e200]] * 3)),
    as_text(matrix=packed(MATRIX)[:-1]),
    as_text(matrix=packed(MATRIX)[4:]),
    as_text(matrix=packed(MATRIX)[:8] + "\n" + packed(MATRIX)[8:]),
    as_text(matrix="\u00e9" + packed(MATRIX)[1:]),
    as_text(matrix="123"),
    as_text(matrix=packed([[0.0] * 4] * 5_000), form="products"),
    as_text(low=None),
    as_text(low={"0": 0.0}),
    as_text(low=[0.0]),
    as_text(low=[0.0, 0.0, 20.0]),
    as_text(high=[0.0, math.inf, 20.0]),
    as_text(low=[-1e300, 0.0, 0.0]),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_tasks_are_refused_before_the_record_is_looked_at(text):
    person = Person([0.5, 0.25], 3.0, epsilon=2.0)
    person._x = person._y = None
    with pytest.raises(ValueError, match=r"task|Task"):
        person.answer(text)
    assert person.epsilon_left == 2.0


def test_a_person_answers_once_and_within_their_limit():
    person = Person([0.5, 0.25], 3.0, epsilon=2.0)
    with pytest.raises(BudgetExhaustedError, match="would cost"):
        person.answer(task(epsilon=2.01).to_json())
    with pytest.raises(ValueError, match="about 2 features"):
        person.answer(Task(1.0, (0, 0), (1, 1), "linear", ((0, 0, 1),), "number", 1.0).to_json())
    report = Report.from_json(person.answer(task().to_json()))
    assert (report.n_people, report.task) == (1, task().hash)
    # In no other cohort, and not the same question again.
    for again in (task("gradient", epsilon=0.1), task()):
        with pytest.raises(BudgetExhaustedError):
            person.answer(again.to_json())


@pytest.mark.parametrize("matrix", [((1e30,) * 4,) * 3, ((0.0,) * 4,) * 3, ((1e-300,) * 4,) * 3])
@pytest.mark.parametrize("form", ["linear", "squares", "products", "gradient"])
@pytest.mark.parametrize(
    ("answer", "radius"), [("vector", 1e-29), ("vector", 1e29), ("levels", 1e-29), ("levels", 1.0), ("levels", 1e29)]
)
def test_after_the_first_look_a_task_is_answered_whatever_the_record(matrix, form, answer, radius):
    asked = task(form, answer, radius, matrix=matrix)
    for y in (0.0, 10.0, -1e300, 5.0):
        report = asked.release([[1e300, -1e300]], [y], noise_from())
        asked.check(report)


def test_reports_of_other_tasks_and_impossible_ones_are_refused():
    asked, other = task(), task(radius=4.5)
    report = asked.release(X, Y, noise_from())
    with pytest.raises(ValueError, match="another task"):
        other.mean(report)
    with pytest.raises(ValueError, match="same task"):
        report + other.release(X, Y, noise_from())
    with pytest.raises(ValueError, match="people can reach"):
        asked.check(Report(asked.hash, 1, (10**9, 0, 0)))
    with pytest.raises(ValueError, match="people can reach"):
        asked.check(Report(asked.hash, 1, (1,)))
    for n_people, sums in [(0, (1,)), (True, (1,)), (1, (1.0,)), (1, ()), (1, (True,)), (1, "1")]:
        with pytest.raises(ValueError, match=r"sums|n_people"):
            Report("0" * 64, n_people, sums)


@pytest.mark.parametrize(("x", "y"), [([0.1, math.nan], 1.0), ([0.1, 0.2], math.inf), ([0.1], 1.0)])
def test_what_is_not_finite_or_of_another_shape_is_refused_without_a_word_of_it(x, y):
    with pytest.raises(ValueError, match=r"finite|NaN|infinity|shape") as caught:
        task().release([x], [y], noise_from())
    assert "0.1" not in str(caught.value)
    with pytest.raises(ValueError, match="at least one person"):
        task().release(np.empty((0, 2)), [], noise_from())
