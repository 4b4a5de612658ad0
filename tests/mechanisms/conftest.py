"""What the tests of randomized bits share."""

import pytest

from skldp.mechanisms.bits import _mask_sampling as kernels


@pytest.fixture(params=["numpy", "interpreted", "compiled"])
def each_path(request, use_loops):
    """Have releases of any size take numpy's passes, the loops as Python runs them, or the compiled ones."""
    if request.param == "compiled" and kernels.compiled_loops() is None:
        pytest.skip("numba is not installed")
    use_loops({"numpy": None, "interpreted": kernels.INTERPRETED}.get(request.param, kernels.compiled_loops()))


@pytest.fixture
def use_loops(monkeypatch):
    """Have releases of any size use these loops."""
    monkeypatch.setattr(kernels, "_FEWEST", 0)
    return lambda loops: monkeypatch.setattr(kernels, "compiled_loops", lambda: loops)
