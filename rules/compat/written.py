"""What is written to a part of a tensor."""


def fitting(value, place):
    """``value`` without the leading axes of one element that ``place`` has not: torch leaves them out."""
    return value.reshape(value.shape[max(value.ndim - place.ndim, 0) :])
