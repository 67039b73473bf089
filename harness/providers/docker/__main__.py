"""Builds the image of a node: see `harness.providers.docker.image`."""

import sys

from harness.providers.docker.image import main

main(sys.argv[1:])
