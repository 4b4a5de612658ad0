"""A progress bar for long decisions."""

__all__ = ["decisions_bar"]


def decisions_bar():
    """Make what shows a bar, on the terminal or in a notebook, while decisions come in.

    Returns
    -------
    callable
        Takes an iterable of decisions and how many there will be, and yields them.

    Raises
    ------
    ImportError
        If rich is not installed.
    """
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        raise ImportError('verbose=True needs rich: pip install "skldp[study]".') from None

    def shown(decisions, total):
        columns = TextColumn("certifying histories"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns) as bar:
            yield from bar.track(decisions, total=total)

    return shown
