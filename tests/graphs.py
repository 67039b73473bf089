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


def slow_ranks(links, iterations=3, damping=0.85):
    """
    PageRank by loops over pages and links; ranks have the mean 1.
    """
    ranks = [1.0] * len(links)
    for _ in range(iterations):
        dangling = sum(rank for rank, to in zip(ranks, links, strict=True) if not to)
        new = [1 - damping + damping * dangling / len(links)] * len(links)
        for page, to in enumerate(links):
            for target in to:
                new[target] += damping * ranks[page] / len(to)
        ranks = new
    return ranks
