"""How every picture draws an axis of epsilon: logarithmic, with ticks that read as numbers."""

__all__ = ["draw_epsilon_axis"]

# From this ratio of its ends on, an axis has room for powers of ten alone.
_WIDE = 200


def draw_epsilon_axis(ax):
    """Make the horizontal axis one of epsilon, for what is drawn so far."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < _WIDE else (1.0,)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
