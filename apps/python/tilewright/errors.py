"""What calls raise."""


class UserError(ValueError):
    """A mistake in what was given: the message names it, the cause and a repair."""


class TilewrightBug(RuntimeError):
    """A bug of Tilewright."""
