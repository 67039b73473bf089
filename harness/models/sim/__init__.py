"""Stochastic Petri nets and phase-type delays: engines that know no Hadoop word."""
