import pytest


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in an empty directory; return its exit code, what it printed, and what it complained."""
    pytest.importorskip("typer")
    pytest.importorskip("matplotlib").use("Agg")
    from skldp.cli import main

    monkeypatch.chdir(tmp_path)
    # Wide enough that no line is wrapped.
    monkeypatch.setenv("COLUMNS", "200")

    def run_command(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return stop.value.code or 0, printed.out, printed.err

    return run_command
