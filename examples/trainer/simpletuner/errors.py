"""The two ways a run can end early on purpose."""


class ConfigError(Exception):
    """The configuration cannot work; the message says what to change."""


class Interrupted(Exception):
    """Somebody asked the training to stop, and its checkpoint is written."""
