"""What draws texts from a model."""


class GenerationMixin:
    """Generation stays in transformers: it is written for torch."""

    def generate(self, *inputs, **kwargs):
        """Not converted."""
        raise NotImplementedError("generate() of transformers is not converted")

    def prepare_inputs_for_generation(self, *inputs, **kwargs):
        """As above."""
        raise NotImplementedError("generate() of transformers is not converted")

    def _update_model_kwargs_for_generation(self, *inputs, **kwargs):
        raise NotImplementedError("generate() of transformers is not converted")
