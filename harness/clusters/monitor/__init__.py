"""Speed and load of the machines that do the work, while trials run."""
