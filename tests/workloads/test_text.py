"""
Tests for the plans of texts, and for the texts that `mapreduce.harness.jobs.text` makes.
"""

import bisect
import hashlib
import itertools
import zipfile

from collections import Counter
from functools import cache

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.base.errors import SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.workloads.files import PAGE, TEXTS, plan_text
from tests.workloads.generators import below, draws, printed, zipf_words

MIB = 2**20
CLASS = {
    "zipf": "mapreduce.harness.jobs.text.ZipfText",
    "random": "mapreduce.harness.jobs.text.RandomText",
}


def spec(size=9 * MIB, seed=1):
    """
    A text of *size* bytes.
    """
    return WorkloadSpec(name="wordcount", input_bytes=size, seed=seed)


def made(kind="zipf", size=3 * PAGE, *, seed=1, first=0, count=None):
    """
    Pages of a text, as the generator prints them; all of them unless a count is given.
    """
    pages = -(-size // PAGE)
    bytes_ = {"pages.bytes": size}
    return printed(CLASS[kind], seed=seed, first=first, count=count or pages, properties=bytes_)


@cache
def shares():
    """
    Ends of the part that each rank takes of 2^20 numbers.
    """
    ends = list(itertools.accumulate(2**32 // rank for rank in range(1, 20_001)))
    return [(end << 20) // ends[-1] for end in ends]


def obvious(seed, number, size):
    """
    A page of the Zipf text, word by word.
    """
    chances, page = draws(seed, number), ""
    while len(page) < size:
        for left in range(10 + below(chances, 3), 0, -1):
            room = -1
            while room != 0 and room < 4:
                word = zipf_words()[bisect.bisect(shares(), next(chances) >> 44)]
                room = size - len(page) - len(word) - 1
            page += word + ("\n" if left == 1 or room == 0 else " ")
            if room == 0:
                break
    return page.encode()


class TestPlan:
    """Files and their key."""

    @given(st.integers(200, 2**40), st.integers(MIB, 2**28), st.sampled_from(sorted(TEXTS)))
    def test_is_exact_and_fits_blocks(self, size, block, kind):
        """
        The fewest files of whole pages that hold the input, none larger than a block, and equal
        within a page; a single byte without room for a record is left out.
        """
        size = min(size, 1000 * block)
        sizes = [f.bytes for f in plan_text(spec(size), block, kind).files]

        if kind == "sequence":
            assert size * 0.995 - 30 <= sum(sizes) <= size
            assert max(sizes) <= block
            assert len(sizes) <= -(-size // (block // PAGE * PAGE))
            return
        assert sum(sizes) == size - (kind == "random" and size % PAGE == 1)
        assert max(sizes) <= block
        assert len(sizes) == -(-sum(sizes) // (block // PAGE * PAGE))
        assert max(sizes) - min(sizes) < 2 * PAGE
        assert all(s % PAGE == 0 for s in sizes[:-1])

    def test_key_tells_contents_apart(self):
        """
        Size, block, seed and kind decide the content, and nothing else does.
        """
        requested = [(spec(), MIB), (spec(seed=2), MIB), (spec(8 * MIB), MIB), (spec(), 2 * MIB)]
        keys = [plan_text(s, block, kind).key for s, block in requested for kind in TEXTS]

        assert len(set(keys)) == 12

    @pytest.mark.parametrize(
        ("size", "block", "kind", "says"),
        [
            (MIB, PAGE - 1, "zipf", "a block of 32767 bytes does not hold a record"),
            (1, MIB, "random", "a text of 1 bytes holds no record"),
            (107, MIB, "sequence", "a text of 107 bytes holds no record"),
        ],
    )
    def test_refuses_what_holds_nothing(self, size, block, kind, says):
        """
        No page in a block, or no record in a text.
        """
        with pytest.raises(SpecError, match=says):
            plan_text(spec(size), block, kind)

    def test_seed_fits_java(self):
        """
        One that does not is refused before a job could fail for it.
        """
        with pytest.raises(SpecError, match="is larger than 9223372036854775807"):
            plan_text(spec(seed=2**63), MIB, "zipf")


@pytest.mark.process
class TestBytes:
    """What the generator makes."""

    @pytest.mark.parametrize("kind", CLASS)
    @pytest.mark.parametrize("size", [3, 5, 256, PAGE + 2])
    def test_has_the_size_asked_for(self, kind, size):
        """
        To the byte, and every page ends with a newline, without an empty word before it.
        """
        data = made(kind, size)
        pages = [data[i : i + PAGE] for i in range(0, len(data), PAGE)]

        assert len(data) == size
        assert all(p.endswith(b"\n") for p in pages)
        assert size < 4 or not any(x in data for x in (b"  ", b"\n\n", b" \n"))

    @pytest.mark.parametrize("kind", CLASS)
    def test_a_page_is_the_same_wherever_it_is_made(self, kind):
        """
        Asked for alone, or in a longer text, it has the same bytes: so the number of files and
        maps changes nothing.  Another seed is another text.
        """
        data = made(kind, 5 * PAGE)

        assert made(kind, 5 * PAGE, first=3, count=1) == data[3 * PAGE : 4 * PAGE]
        assert made(kind, 9 * PAGE, count=5) == data
        assert made(kind, 5 * PAGE, seed=2)[:100] != data[:100]

    @pytest.mark.parametrize("size", [PAGE, 20_001])
    def test_zipf_is_the_obvious_text(self, size):
        """
        Drawn word by word in another language, the bytes are the same.
        """
        assert made(size=size, seed=7) == obvious(7, 0, size)

    @pytest.mark.parametrize(
        ("kind", "starts"), [("zipf", "a156b7328360ad6c"), ("random", "ad1455622bc8a559")]
    )
    def test_never_changes(self, kind, starts):
        """
        The bytes are the same on every machine and with every JDK, for cached inputs are known by
        their seed.  Raise VERSION before you change this hash.
        """
        assert hashlib.sha256(made(kind, 10 * PAGE - 5, seed=7)).hexdigest()[:16] == starts


class TestZipf:
    """Words as frequent as in real text."""

    @pytest.mark.process
    def test_frequencies(self):
        """
        Test of fit by chi-square over 4 MB: the word of rank r is as frequent as 1/r, with a class
        for each of the first 200 ranks, and classes of twice the ranks each behind them.
        """
        counts = Counter(made(size=128 * PAGE).decode().split())
        seen = np.array([counts[w] for w in zipf_words()])
        law = 1 / np.arange(1, 20_001)
        edges = [*range(200), *(200 * 2**n for n in range(7))]

        expected = np.add.reduceat(law, edges) / law.sum() * seen.sum()
        assert seen.sum() == counts.total()
        assert stats.chisquare(np.add.reduceat(seen, edges), expected).pvalue > 0.001

    @pytest.mark.process
    def test_lines_have_ten_to_twelve_words(self):
        """
        But for the last of a page; each length is as frequent as the others.
        """
        data = made(size=32 * PAGE)
        pages = (data[i : i + PAGE].decode().split("\n")[:-2] for i in range(0, len(data), PAGE))
        lengths = Counter(len(line.split(" ")) for page in pages for line in page)

        assert set(lengths) == {10, 11, 12}
        assert stats.chisquare(list(lengths.values())).pvalue > 0.001

    def test_words_are_pronounceable(self):
        """
        Each alternates consonants and vowels.
        """
        for word in zipf_words():
            assert 3 <= len(word) <= 6
            assert all((c in "aeiou") == (i % 2 == 1) for i, c in enumerate(word))


@pytest.mark.process
class TestRandom:
    """Text by the law of RandomTextWriter."""

    def test_words_are_those_of_hadoop(self):
        """
        Every one stands in the class file of RandomTextWriter, and they are a thousand.
        """
        name = "org/apache/hadoop/examples/RandomTextWriter.class"
        other_text = zipfile.ZipFile(HadoopHome.find().examples_jar()).read(name)
        own_text = set(made("random", 64 * PAGE).split())

        assert len(own_text) == 1000
        assert all(len(w).to_bytes(2, "big") + w in other_text for w in own_text)

    def test_every_word_is_as_likely(self):
        """
        Test of fit by chi-square over 2 MB.
        """
        counts = Counter(made("random", 64 * PAGE).split())

        assert stats.chisquare(list(counts.values())).pvalue > 0.001

    def test_records_have_a_key_and_a_value(self):
        """
        Of 5 to 9 and 10 to 99 words, but for the value of a page's last record; each number of
        words in a key is as frequent as the others.
        """
        data = made("random", 64 * PAGE)
        pages = (data[i : i + PAGE].decode().split("\n")[:-1] for i in range(0, len(data), PAGE))
        whole = [r.split("\t") for page in pages for r in page[:-1]]
        keys = Counter(len(key.split(" ")) for key, _ in whole)

        assert set(keys) == {5, 6, 7, 8, 9}
        assert stats.chisquare(list(keys.values())).pvalue > 0.001
        assert {len(value.split(" ")) for _, value in whole} <= set(range(10, 100))
