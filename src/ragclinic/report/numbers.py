"""Numbers as people read them: three figures, the unit behind, the same in every language."""

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def duration(ms: float) -> str:
    """A time given in ms.

    >>> duration(134_000), duration(34_912), duration(8_000), duration(381.4), duration(0.26), duration(0)
    ('134 s', '34.9 s', '8.0 s', '381 ms', '0.3 ms', '0 ms')
    """
    if abs(ms) >= 99_950:
        return f"{ms / 1000:,.0f} s"
    if abs(ms) >= 999.5:
        return f"{ms / 1000:,.1f} s"
    if abs(ms) >= 9.95 or ms == 0:
        return f"{ms:.0f} ms"
    return f"{ms:.1f} ms"


def percent(share: float) -> str:
    """A share given as 0..1.

    >>> percent(0.873), percent(0.004), percent(0.0001), percent(0.0), percent(1)
    ('87%', '0.4%', '<0.1%', '0%', '100%')
    """
    value = share * 100
    if 0 < value < 0.05:
        return "<0.1%"
    return f"{value:.1f}%" if 0 < abs(value) < 0.95 else f"{value:.0f}%"


def change(before: float, after: float) -> str:
    """How a number changed, in percent of what it was.

    >>> change(3912, 412), change(100, 104), change(0, 5), change(7, 7)
    ('−89%', '+4%', '', '0%')
    """
    if before == 0:
        return ""
    value = round((after - before) / before * 100)
    sign = "−" if value < 0 else "+" if value > 0 else ""
    return f"{sign}{abs(value)}%"


def count(value: float) -> str:
    """A whole number with its thousands apart.

    >>> count(3912.4)
    '3,912'
    """
    return f"{value:,.0f}"


def times(factor: float) -> str:
    """A factor.

    >>> times(9.18), times(0.53), times(142.2)
    ('9.2×', '0.53×', '142×')
    """
    if factor >= 99.5:
        return f"{factor:,.0f}×"
    return f"{factor:.1f}×" if factor >= 0.995 else f"{factor:.2f}×"


def byte_seconds(value: float) -> str:
    """Bytes held times seconds, in decimal units.

    >>> byte_seconds(412_300_000), byte_seconds(0)
    ('412 MB·s', '0 B·s')
    """
    unit = 0
    while value >= 999.5 and unit < len(_BYTE_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    figures = f"{value:.0f}" if value >= 99.5 or unit == 0 else f"{value:.1f}"
    return f"{figures} {_BYTE_UNITS[unit]}·s"
