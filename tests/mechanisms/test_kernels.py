"""The loops give the bits of numpy's steps: interpreted everywhere, compiled where numba is installed."""

import copy
import sys
import threading

import numpy as np
import pytest

from skldp.mechanisms._noise import Noise
from skldp.mechanisms.bits import _mask_sampling as kernels
from skldp.mechanisms.bits._bit_flip import BitFlip, bitrand, latent, ome
from skldp.mechanisms.bits._mask_sampling import INTERPRETED, Loops, compiled_loops

UNIT = (-np.ones(7), np.ones(7))
RELEASES = {
    "published": bitrand(1.0, UNIT),
    "exact": bitrand(20.0, UNIT, calibration="exact", n_sampled_features="all"),
    "two bits": bitrand(1.0, UNIT, n_bits=2),
    "twelve bits": bitrand(1.0, UNIT, n_bits=12),
    "thirteen bits": bitrand(1.0, UNIT, n_bits=13),
    "saturated": bitrand(1.0, (-np.full(7, 5.0), np.full(7, 5.0)), n_integer_bits=0),
    "one-sided": bitrand(1.0, (np.full(7, 0.2), np.full(7, 0.9))),
    "far apart": bitrand(1.0, (-np.full(7, 1e12), np.full(7, 1e12)), n_integer_bits=0),
    "bounds of their own": bitrand(1.0, (-np.arange(1.0, 8), np.arange(1.0, 8))),
    "some features": bitrand(1.0, UNIT, n_sampled_features=3),
    "unbiased": bitrand(1.0, UNIT, debias=True),
    "unbiased, exact": bitrand(20.0, UNIT, calibration="exact", debias=True),
    "latent": latent(1.0, UNIT),
    "ome": ome(1.0, UNIT),
}


def rows(dtype, n=400):
    X = np.random.default_rng(0).uniform(-1, 1, (n, 7)).astype(dtype)
    grid = np.arange(-512, 513) / 512
    X.reshape(-1)[: grid.size] = grid
    X[-1] = [0.0, -0.0, 1.0, -1.0, np.finfo(dtype).smallest_subnormal, -np.finfo(dtype).smallest_subnormal, 0.5]
    return X


def released(mechanism, X):
    found = mechanism.release(X, Noise(bytes(32), secure=False))
    return found.rows.tobytes(), found.n_moved


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RELEASES)
def test_the_loops_release_the_same_bits(use_loops, name, dtype):
    mechanism = RELEASES[name]
    X = rows(dtype) * dtype(mechanism.bounds.high[0])
    use_loops(None)
    expected = released(mechanism, X)
    use_loops(INTERPRETED)
    assert released(mechanism, X) == expected


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("loops", [None, INTERPRETED])
def test_what_is_not_finite_is_refused_before_its_block_is_written(use_loops, value, loops):
    X = rows(np.float32)
    X[0, -1] = value
    out = np.full_like(X, 9)
    use_loops(loops)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        RELEASES["published"].release(X, Noise(bytes(32), secure=False), out)
    assert (out == 9).all()


def recorded(use_loops, check):
    """Have releases use loops that are checked before they run, and give the names of those that ran."""
    called = []

    def watched(name, loop):
        def run(*arguments):
            called.append(name)
            check(name, arguments)
            return loop(*arguments)

        return run

    use_loops(Loops(*(watched(name, loop) for name, loop in INTERPRETED._asdict().items())))
    return called


@pytest.mark.parametrize(
    "out",
    [np.zeros((400, 7)), np.zeros((400, 14))[:, ::2], np.zeros((400, 7), order="F"), np.zeros((400, 7), dtype="f4")],
    ids=["plain", "strided", "Fortran", "float32"],
)
def test_loops_never_run_over_arrays_that_do_not_fit(use_loops, out):
    """Compiled, nothing would stop them at the end of an array."""
    numbered = {"encode": (0, 3), "look_up_masks": (1, 3, 4), "decode": (0, 1, 3)}

    def check(name, arguments):
        assert all(one.flags.c_contiguous and one.flags.aligned for one in arguments if isinstance(one, np.ndarray))
        sizes = {arguments[place].size for place in numbered.get(name, ())}
        if name == "invert_residual":
            sizes = {arguments[place].size for place in (1, 9, 11)}
            assert arguments[0].size == arguments[10].size
        assert len(sizes) == 1

    recorded(use_loops, check)
    RELEASES["published"].release(rows(np.float64), Noise(bytes(32), secure=False), out)
    assert out.any()


@pytest.mark.parametrize("loops", [None, INTERPRETED])
def test_other_rows_and_read_only_outputs_are_refused(use_loops, loops):
    use_loops(loops)
    X, noise = rows(np.float64), Noise(bytes(32), secure=False)
    for wrong in (np.zeros((200, 7)), np.zeros((800, 7)), np.zeros((400, 14)), np.zeros(2800), np.zeros((400, 7, 1))):
        with pytest.raises(ValueError, match="out must be writeable and have the shape"):
            RELEASES["published"].release(X, noise, wrong)
        assert not wrong.any()
    with pytest.raises(ValueError, match="rows must have the shape"):
        RELEASES["published"].release(X.reshape(-1, 14), noise)
    fixed = np.zeros_like(X)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        RELEASES["published"].release(X, noise, fixed)


def test_short_symmetric_codes_take_every_loop(use_loops):
    called = recorded(use_loops, lambda *_: None)
    for name in ("published", "bounds of their own", "some features"):
        released(RELEASES[name], rows(np.float64))
        assert set(called) == set(Loops._fields)
        called.clear()
    for name in ("thirteen bits", "latent"):
        released(RELEASES[name], rows(np.float64))
        assert set(called) == {"look_up_masks", "invert_residual"}
        called.clear()


@pytest.fixture
def chosen_anew():
    """Have the choice made again within the test, and after it."""
    compiled_loops.cache_clear()
    yield
    compiled_loops.cache_clear()


@pytest.mark.usefixtures("chosen_anew")
def test_without_numba_numpy_does_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert compiled_loops() is None
    assert released(RELEASES["published"], np.zeros((200_000, 7)))[1] == 0


@pytest.fixture
def numba():
    return pytest.importorskip("numba", reason="needs the extra fast")


@pytest.fixture
def loops(numba):
    found = compiled_loops()
    assert found is not None
    assert all(hasattr(loop, "signatures") for loop in found)
    return found


@pytest.mark.few(10)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RELEASES)
def test_compiled_loops_release_the_same_bits(loops, use_loops, name, dtype):
    mechanism, X = RELEASES[name], rows(dtype, 50_000)
    use_loops(None)
    expected = released(mechanism, X)
    use_loops(loops)
    assert released(mechanism, X) == expected
    X.flags.writeable = False
    assert released(mechanism, X) == expected
    unaligned = np.frombuffer(b" " + X.tobytes(), dtype=X.dtype, offset=1).reshape(X.shape)
    assert released(mechanism, unaligned) == expected


@pytest.mark.parametrize(
    "layout", ["one number", "repeated row", "every second column", "backwards", "Fortran", "one column"]
)
def test_compiled_loops_take_rows_of_any_layout(loops, use_loops, layout):
    X = np.random.default_rng(0).uniform(-1, 1, (300, 14))
    laid = {
        "one number": np.broadcast_to(X[0, 0], (300, 7)),
        "repeated row": np.broadcast_to(X[0, :7], (300, 7)),
        "every second column": X[:, ::2],
        "backwards": X[::-1, 7:],
        "Fortran": np.asfortranarray(X[:, :7]),
        "one column": np.repeat(X, 14, axis=0)[:, 3:4],
    }[layout]
    mechanism = RELEASES["published"] if laid.shape[1] == 7 else bitrand(1.0, (-np.ones(1), np.ones(1)))
    use_loops(None)
    expected = released(mechanism, np.ascontiguousarray(laid))
    use_loops(loops)
    assert released(mechanism, laid) == expected


@pytest.mark.usefixtures("chosen_anew", "numba")
def test_threads_may_compile_at_the_same_time(monkeypatch):
    monkeypatch.setattr(kernels, "_FEWEST", 0)
    monkeypatch.setattr(BitFlip, "block_cells", 1000)
    X, seen, mechanism = rows(np.float64), [], copy.copy(RELEASES["published"])
    threads = [threading.Thread(target=lambda: seen.append(released(mechanism, X))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert len(set(seen)) == 1


@pytest.mark.usefixtures("chosen_anew")
def test_numba_can_be_switched_off(numba, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert compiled_loops() is None


@pytest.mark.few(1)
@pytest.mark.usefixtures("chosen_anew")
@pytest.mark.parametrize("error", [RuntimeError("no locator available"), OSError(28, "No space left on device")])
def test_where_no_compiled_code_can_be_kept_it_is_made_anew(numba, use_loops, monkeypatch, error):
    own, kept = numba.njit, []

    def nowhere(*args, **options):
        # numba compiles functions of its own as well.
        if "cache" in options:
            kept.append(options["cache"])
        if options.get("cache"):
            raise error
        return own(*args, **options)

    X = rows(np.float64)
    use_loops(None)
    expected = released(RELEASES["published"], X)
    monkeypatch.setattr(numba, "njit", nowhere)
    loops = compiled_loops()
    assert kept == [True, False, False, False, False]
    use_loops(loops)
    assert released(RELEASES["published"], X) == expected
