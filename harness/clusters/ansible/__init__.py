"""Provider `ansible`: bare hosts, prepared by playbooks."""
