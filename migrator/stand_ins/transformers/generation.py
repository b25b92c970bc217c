"""What draws texts from a model."""


class GenerationMixin:
    """Generation stays in transformers: it is written for torch."""

    def generate(self, *inputs, **kwargs):
        """Not converted."""
        raise NotImplementedError("generate() of transformers is not converted")
