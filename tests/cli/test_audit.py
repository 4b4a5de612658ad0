import pytest

from skldp.study import _catalogue as catalogue


@pytest.mark.slow
def test_every_mechanism_of_the_catalogue_stands(run, fixed_noise):
    code, out, err = run("audit", "--trials", "4000")
    assert (code, err) == (0, "")
    names = [line.split(":")[0] for line in out.splitlines()]
    assert names == [*catalogue.FEATURE_MECHANISMS, *catalogue.LABEL_MECHANISMS]
    assert out.count("not refuted") == len(names)


def test_a_broken_mechanism_is_refuted_with_exit_code_1(run, monkeypatch):
    label_class = catalogue.LABEL_MECHANISMS["label-rr"][0]

    class NoNoise(label_class):
        def transform(self, y):
            return y

    monkeypatch.setitem(catalogue.LABEL_MECHANISMS, "label-rr", (NoNoise, {}))
    code, out, err = run("audit", "label-rr", "--trials", "1000")
    assert (code, err) == (1, "")
    assert "claimed 1: REFUTED" in out
