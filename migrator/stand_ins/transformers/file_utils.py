"""Where older releases have what is in ``utils``."""
