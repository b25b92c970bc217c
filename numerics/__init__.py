"""Whether two versions of a model agree; knows nothing of how the port was made."""
