"""Real material on disk, made on first use from what installed packages ship; needs no network.

``images``, ``text`` and ``digits`` make a set or find the one that was made before.
``traces`` gives the file of a small trace that comes with the package.
``workbench.datasets.loading`` has the torch data sets over them.
"""

from workbench.datasets.built import traces
from workbench.datasets.cache import cache_folder
from workbench.datasets.corpus import text
from workbench.datasets.handwriting import Digits, digits
from workbench.datasets.photographs import images

__all__ = ["Digits", "cache_folder", "digits", "images", "text", "traces"]
