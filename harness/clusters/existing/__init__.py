"""Provider `existing`: a cluster that runs already and is not ours."""
