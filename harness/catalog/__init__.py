"""
The catalog of past jobs: filled from job histories alone, asked for the job most like another.

Its columns are Table 1 of MRTuner's paper as far as histories give it, and what profiles need
(docs/catalog.md).
"""
