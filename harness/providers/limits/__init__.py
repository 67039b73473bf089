"""
Hardware made slower on purpose: nodes that are slower than the machine that they are on.

    calibrate  sets limits, measures what nodes achieve, and corrects the settings
    kernel     shares of processors and rates of devices by control groups, of links by ``tc``
    disks      a disk of its own for a node: a file as a block device
"""
