"""The published models of torchvision and timm, converted as packages and held against torch (``python -m tests.corpora``)."""
