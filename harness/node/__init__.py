"""
The node agent: our one program on a node, copied there as ``node.pyz`` (`harness.node.build`).

Its modules import the standard library and each other, nothing else of the harness, and run on
Python 3.6 and newer.
"""
