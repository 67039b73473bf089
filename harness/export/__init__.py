"""A run for other programs: tables, test reports, and the forms that others read."""
