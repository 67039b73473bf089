"""
What this machine can do, and for each lack the command that repairs it.

    checks      all checks in order, and what each provider lacks
    machine     system, cores, load, memory, disk; what the kernel lets this user do
    programs    programs that the harness calls, the jars that it brings, GPUs
    commands    running a command with a time limit, and reporting its failure in one line
"""
