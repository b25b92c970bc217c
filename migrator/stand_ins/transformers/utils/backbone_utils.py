"""Models of images that give what their stages give."""


def get_aligned_output_features_output_indices(out_features, out_indices, stage_names):
    """The names and places of the stages that are asked for; the last where none is."""
    if out_features is None and out_indices is None:
        return [stage_names[-1]], [len(stage_names) - 1]
    if out_indices is None:
        return out_features, [stage_names.index(name) for name in out_features]
    if out_features is None:
        return [stage_names[i] for i in out_indices], list(out_indices)
    return out_features, list(out_indices)


class BackboneMixin:
    """The stages of a model, by name and place."""

    has_attentions = True

    def _init_backbone(self, config):
        if getattr(config, "use_timm_backbone", False):
            raise NotImplementedError("a backbone of timm is not converted")
        self.config = config
        self.stage_names = config.stage_names
        self._out_features, self._out_indices = get_aligned_output_features_output_indices(
            getattr(config, "out_features", None),
            getattr(config, "out_indices", None),
            config.stage_names,
        )
        self.num_features = None

    @property
    def out_features(self):
        """The names of the stages that are asked for."""
        return self._out_features

    @property
    def out_indices(self):
        """Their places."""
        return self._out_indices

    @property
    def out_feature_channels(self):
        """The number of channels of each stage."""
        return {stage: self.num_features[i] for i, stage in enumerate(self.stage_names)}

    @property
    def channels(self):
        """The number of channels of the stages that are asked for."""
        return [self.out_feature_channels[name] for name in self.out_features]
