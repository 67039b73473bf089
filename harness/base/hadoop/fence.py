"""
What keeps others out of a cluster, as properties of its site files.

RPC answers hosts of the cluster alone; web services answer requests with the cluster's secret
alone.  Blocks are given to those to whom the NameNode gave a token.
"""

from __future__ import annotations

from harness.base.hadoop.daemons import USER, Layout

SECRET = "secret"  # noqa: S105 - a name
HEADER = "X-Harness-Secret"
# Names of users are what anybody may claim; these protocols have none, but tokens of their tasks.
_BY_TOKEN = ("applicationmaster", "containermanagement", "job.task", "resourcelocalizer")
_ADMINISTRATORS = (
    "yarn.admin.acl", "mapreduce.jobhistory.admin.acl", "mapreduce.cluster.administrators",
    "dfs.cluster.administrators", "yarn.scheduler.capacity.root.acl_submit_applications",
    "yarn.scheduler.capacity.root.acl_administer_queue",
    "security.service.authorization.default.acl",
)  # fmt: skip
_ALWAYS = {
    "hadoop.security.authorization": "true",
    "hadoop.http.filter.initializers": "mapreduce.harness.fence.WebFence",
    "dfs.datanode.httpserver.filter.handlers": "mapreduce.harness.fence.DataNodeFence",
    "dfs.permissions.enabled": "true",
    "dfs.block.access.token.enable": "true",
    "yarn.acl.enable": "true",
    "yarn.webapp.enable-rest-app-submissions": "false",
    "mapreduce.cluster.acls.enabled": "true",
    # no process of `id` each time somebody asks for the groups of a user that no system knows
    "hadoop.user.group.static.mapping.overrides": f"{USER}={USER};dr.who=;",
    **dict.fromkeys(_ADMINISTRATORS, USER),
    **{f"security.{protocol}.protocol.acl": "*" for protocol in _BY_TOKEN},
}
_HOSTS = "security.service.authorization.default.hosts"
ACCEPT = "yarn.app.mapreduce.am.admin-command-opts"
OWNED = frozenset({*_ALWAYS, _HOSTS, ACCEPT})


def properties(layout: Layout) -> dict[str, str]:
    """Properties that fence the cluster of *layout*."""
    addresses = dict.fromkeys(["127.0.0.1", *(member.address for member in layout.members)])
    accept = {ACCEPT: " ".join(layout.accept_options)} if layout.accept_options else {}
    return {**_ALWAYS, **accept, _HOSTS: ",".join(addresses)}
