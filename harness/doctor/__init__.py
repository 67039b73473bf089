"""
What this machine can do, and for each lack the command that cures it.

    checks      all checks in order, what each provider needs, and what it lacks
    finding     what a check answers
    asking      commands that are asked, with a time limit
    machine     system, cores, load, memory, disk
    programs    Python, Java, Maven, compilers, commands; Hadoop's jars and our own
    kernel      namespaces, control groups, disks of nodes, rates of links
    gpus        devices and their driver, CUDA, what GPU workloads are built for
"""
