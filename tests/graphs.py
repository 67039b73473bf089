"""
Small graphs as the generator writes them, and their ranks the obvious way.
"""

import random


def line(page, links, rank=1.0):
    """
    One line of a graph.
    """
    return f"{page:010d}\t{rank:020.10f}\t{' '.join(f'{link:010d}' for link in links)}\n".encode()


def graph(seed=1, pages=300, most=30):
    """
    Links of each page: some have none, some two to the same page, some one to themselves.
    """
    rng = random.Random(seed)
    return [[rng.randrange(pages) for _ in range(rng.randrange(most))] for _ in range(pages)]


def graph_file(links, ranks=None):
    """
    Bytes of a graph.
    """
    ranks = ranks or [1.0] * len(links)
    return b"".join(line(page, to, ranks[page]) for page, to in enumerate(links))


def read_links(data):
    """
    Links of each page, whatever the order of the lines.
    """
    rows = [row.split(b"\t") for row in data.splitlines()]
    by_page = {int(page): [int(link) for link in links.split()] for page, _, links in rows}
    return [by_page[page] for page in sorted(by_page)]


def edge_file(links):
    """
    Bytes of the list of links.
    """
    return b"".join(
        f"{page:010d}\t{target:010d}\n".encode() for page, to in enumerate(links) for target in to
    )


def slow_ranks(links, iterations=3, damping=0.85, *, lossy=False):
    """
    PageRank by loops over pages and links; ranks have the mean 1.

    As HiBench has it, *lossy*: ranks of pages without links get lost, and it ends where none moves
    by more than a tenth.
    """
    ranks = [1.0] * len(links)
    for _ in range(iterations):
        dangling = sum(rank for rank, to in zip(ranks, links, strict=True) if not to)
        dangling = 0.0 if lossy else dangling
        new = [1 - damping + damping * dangling / len(links)] * len(links)
        for page, to in enumerate(links):
            for target in to:
                new[target] += damping * ranks[page] / len(to)
        move, ranks = max(abs(a - b) for a, b in zip(new, ranks, strict=True)), new
        if lossy and move <= 0.1:
            break
    return ranks
