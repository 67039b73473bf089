"""
Channels that accept connections of their own user's and of root's processes alone.
"""

import os
import pwd
import socket
import subprocess
import sys

from pathlib import Path

import pytest

from harness.base.hadoop.daemons import Layout, make_flat_members
from harness.clusters.hadoop_home.home import FENCE, find_java

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not FENCE.is_file(), reason="make setup builds it"),
]

# As Hadoop's RPC, Jetty with Netty, and the data port accept; each says its name.
LISTEN = """
import java.net.*; import java.nio.*; import java.nio.channels.*;
public class Listen {
  static void send(SocketChannel c, String name) throws Exception {
    c.write(ByteBuffer.wrap(name.getBytes())); c.close();
  }
  static void start(String name, ServerSocketChannel c) {
    new Thread(() -> { try { while (true) {
      if (name.equals("old")) { send(c.socket().accept().getChannel(), name); continue; }
      if (name.equals("selected")) {
        Selector s = Selector.open();
        c.configureBlocking(false); c.register(s, SelectionKey.OP_ACCEPT);
        while (true) {
          s.select(); s.selectedKeys().clear();
          for (SocketChannel a = c.accept(); a != null; a = c.accept()) { send(a, name); }
        }
      }
      send(c.accept(), name);
    } } catch (Exception e) { if (c.isOpen()) e.printStackTrace(); } }).start();
  }
  public static void main(String[] a) throws Exception {
    ServerSocketChannel[] all = new ServerSocketChannel[3]; int n = 0;
    for (String name : new String[] {"plain", "old", "selected"}) {
      all[n] = ServerSocketChannel.open(); all[n].socket().bind(new InetSocketAddress(0));
      start(name, all[n]); System.out.println(all[n++].socket().getLocalPort());
    }
    System.in.read();
    for (ServerSocketChannel c : all) c.close();
    System.exit(0);
  }
}
"""
READ = """
import socket, sys
for port in sys.argv[2:]:
    try:
        print(socket.create_connection((sys.argv[1], int(port)), 9).recv(9).decode() or "closed")
    except ConnectionResetError:
        print("closed")
"""


@pytest.fixture
def ports(tmp_path):
    """
    Ports of a JVM with the options of a cluster whose nodes share an address.
    """
    source = tmp_path / "Listen.java"
    source.write_text(LISTEN)
    options = Layout(make_flat_members(1, 20_000), "/c", "/h").accept_options
    argv = [find_java().launcher, *options, "-cp", str(FENCE), str(source)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as listener:
        yield [listener.stdout.readline().strip() for _ in range(3)]
        listener.stdin.write("\n")
        listener.stdin.flush()
        assert listener.wait(30) == 0


def read(ports, address="127.0.0.1", before=()):
    """
    What each port sends to a process that *before* starts.
    """
    python = str(Path(sys.executable).resolve()) if not before else "/usr/bin/python3"
    argv = [*before, python, "-I", "-S", "-c", READ, address, *ports]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.split()


def test_our_own_connections_are_accepted_by_both_protocols(ports):
    """
    Whichever way the channel is used, and again after others were refused.
    """
    names = ["plain", "old", "selected"]
    by_v6 = read(ports, "::1") if socket.has_ipv6 and Path("/proc/net/if_inet6").exists() else names

    assert (read(ports), by_v6) == (names, names)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can be somebody else")
def test_another_users_are_closed(ports):
    """
    Before a byte is sent; those of root, whose JVM it is, are accepted in between.
    """
    number = str(pwd.getpwnam("daemon").pw_uid)
    other = ["setpriv", "--reuid", number, "--regid", number, "--clear-groups", "--"]
    seen = [read(ports, before=other), read(ports), read(ports, before=other)]

    assert seen == [["closed"] * 3, ["plain", "old", "selected"], ["closed"] * 3]
