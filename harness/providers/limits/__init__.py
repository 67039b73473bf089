"""
Hardware made on purpose: nodes that are slower than the machine that they are on.

    correct    sets, measures, and corrects the settings until what is measured is what was asked
    gauge      measures: a small real load on every node at once
    cgroups    the processors' share and the rate of a block device, versions 1 and 2
    disks      a disk of its own for a node: a file as a block device
    shaping    the network's rate, by ``tc``
    nodes      all of it for nodes that are processes of this machine
"""
