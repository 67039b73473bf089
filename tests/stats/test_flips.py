"""Sign flips: which of two predictors is nearer, by their plain definition, by laws, by chance."""

import math

import numpy as np
import pytest

from hypothesis import assume, given
from hypothesis import strategies as st

from harness.base.stats.flips import (
    ALL_FLIPS_TO,
    DRAWS,
    FEWEST_UNITS,
    FLIPS,
    flip_chances,
    flip_signs,
    flip_tests,
    normal_draws,
    unit_sums,
)
from tests.stats.plain_flips import distance, family
from tests.strategies import SEEDS

LEVEL = 0.05
SIDES = st.sampled_from(["first", "either"])


def names_of(number):
    """
    So many units, in the order of their names.
    """
    return [f"u{place:03}" for place in range(number)]


def drawn_gaps(seed, pairs=3, cells=8, shift=-0.3):
    """
    Gaps of a family: pairs x cells, each pair with a level of its own.
    """
    generator = np.random.default_rng(seed)
    levels = shift * generator.standard_exponential((pairs, 1))
    return levels + 0.3 * generator.standard_normal((pairs, cells))


def judged(gaps, side="either", error=LEVEL, units=None):
    """
    The tests of these gaps; each cell is a unit unless units are given.
    """
    numbers = np.asarray(gaps, dtype=float)
    return flip_tests(numbers, units or names_of(numbers.shape[-1]), side=side, error=error)


class TestSigns:
    """Which units have the other sign in which flip."""

    def test_to_twelve_units_are_the_binary_digits_of_the_flip(self):
        """
        The fifth of eight is 101: the first and the last unit have the other sign.
        """
        signs = flip_signs(3)

        assert signs.shape == (8, 3)
        assert signs[[0, 1, 5, 7]].tolist() == [[1, 1, 1], [1, 1, -1], [-1, 1, -1], [-1, -1, -1]]

    @pytest.mark.parametrize("units", [1, FEWEST_UNITS, ALL_FLIPS_TO])
    def test_all_flips_are_there_once(self, units):
        """
        Six units have 64, twelve 4,096.
        """
        assert np.unique(flip_signs(units), axis=0).shape == (2**units, units)

    @pytest.mark.parametrize(
        ("flip", "bits"),
        [(0, "0" * 24), (1, "001011110001011010011111"), (2, "101001011010010011110000"),
         (4095, "100000111101100001011011")],
    )  # fmt: skip
    @pytest.mark.parametrize("units", [13, 16, 17, 24])
    def test_of_more_units_are_bits_of_a_digest(self, flip, bits, units):
        """
        OpenSSL's SHAKE-256 of the texts 1, 2 and 4095 begins with 2f169f, a5a4f0 and 83d85b; the
        first flip changes no sign.
        """
        signs = flip_signs(units)

        assert signs.shape == (4096, units)
        assert signs[flip].tolist() == [-1 if bit == "1" else 1 for bit in bits[:units]]

    @pytest.mark.parametrize("units", [4, 14])
    def test_nobody_can_change_them(self, units):
        """
        They are made once for all.
        """
        assert flip_signs(units) is flip_signs(units)
        with pytest.raises(ValueError, match="read-only"):
            flip_signs(units)[0, 0] = -1


class TestUnitSums:
    """Cells to units."""

    def test_cells_of_one_name_are_added(self):
        """
        Units in the order of their names; sums and shares are parts of the mean over cells.
        """
        sums, shares = unit_sums(np.asarray([[1.0, 2, 3, 6, 8]]), ["b", "a", "b", "a", "c"])

        assert sums.tolist() == [[8 / 5, 4 / 5, 8 / 5]]
        assert shares.tolist() == [2 / 5, 2 / 5, 1 / 5]

    @given(SEEDS)
    def test_their_total_is_the_mean(self, seed):
        """
        Of each pair, whatever the units.
        """
        gaps = drawn_gaps(seed, cells=9)
        units = list(np.random.default_rng(seed).choice(list("abcd"), 9))

        sums, shares = unit_sums(gaps, units)

        assert sums.sum(axis=1) == pytest.approx(gaps.mean(axis=1))
        assert shares.sum() == pytest.approx(1)


class TestByDefinition:
    """The same numbers as a plain program."""

    @given(SEEDS, SIDES, st.sampled_from([0.05, 0.012, 0.3]))
    def test_differences_intervals_and_chances_are_the_same(self, seed, side, error):
        """
        Of families of one to three pairs, on 6 to 14 units of one cell or two.
        """
        generator = np.random.default_rng(seed)
        unit_count = generator.choice([6, 7, 8, 9, 14], p=[0.3, 0.3, 0.2, 0.15, 0.05])
        units = names_of(unit_count) * (1 + seed % 2)
        gaps = drawn_gaps(seed, 1 + seed % 3, len(units), generator.choice([0, -0.2, -0.6, 0.3]))

        found = flip_tests(gaps, units, side=side, error=error)

        numbers = zip(found.difference, found.low, found.high, found.chance, strict=True)
        for one, other in zip(numbers, family(gaps.tolist(), units, side, error), strict=True):
            assert one == pytest.approx(other, rel=1e-7, abs=1e-9)

    @pytest.mark.parametrize(
        ("gaps", "side", "chance"),
        [([-1, -2, -3, -4, -5, -6], "first", 1 / 64),
         ([-1, -2, -3, -4, -5, -6], "either", 2 / 64),
         ([-1, -2, -3, -4, -5, 6], "first", 14 / 64),
         ([-1, -2, -3, -4, -5, 6], "either", 28 / 64),
         ([1, 2, 3, 4, 5, -6], "first", 1 - 10 / 64),
         ([1, 2, 3, 4, 5, 6], "first", 1.0),
         ([1, 2, 3, 4, 5, 6], "either", 2 / 64)],
    )  # fmt: skip
    def test_six_units_are_counted_by_hand(self, gaps, side, chance):
        """
        Of the 64 sums of +-1 to +-6, one is 21 and 14 are 9 or more (the sets of at most 6 in all
        that turn to minus); 10 are 11 or more.
        """
        assert judged([gaps], side).chance.tolist() == [chance]

    @given(st.integers(0, 6), st.floats(0.001, 10))
    def test_equal_gaps_are_tosses_of_a_coin(self, wins, size):
        """
        The chance is that of so many heads of six or more: a binomial tail.
        """
        gaps = [-size] * wins + [size] * (6 - wins)

        tail = sum(math.comb(6, heads) for heads in range(wins, 7)) / 64
        if wins != 3:  # a distance of 0 is one but for rounding
            assert judged([gaps], "first").chance[0] == tail

    def test_the_limit_is_the_flip_that_the_level_allows(self):
        """
        5 % of 64 are three flips: the fourth is where the interval ends.  With gaps of -6 to -1
        these sums are 21, 19, 17 and 17; at 4 % it is the third, 17, too, at 3 % the second.
        """

        def limit(error):
            found = judged([[-1, -2, -3, -4, -5, -6]], "first", error)
            left = np.asarray([-1, -2, -3, -4, -5, -6]) - found.high[0]
            return -left.sum() / np.sqrt((left**2).sum())

        root = math.sqrt(91)
        limits = [abs(limit(error)) for error in (0.0468, 0.046875, 0.05, 0.04, 0.03)]
        assert limits == pytest.approx([17 / root, 15 / root, 15 / root, 17 / root, 19 / root])

    def test_without_a_gap_all_is_chance(self):
        """
        And the difference is known to be none.
        """
        found = judged([[0.0] * 6, [-0.2, -0.3, -0.2, -0.4, -0.3, -0.2]])

        assert (found.chance[0], found.low[0], found.high[0]) == (1, 0, 0)
        assert found.chance[1] == 2 / 64

    @pytest.mark.parametrize("gap", [0.25, -0.5])
    def test_where_nothing_can_be_contradicted_there_is_no_bound(self, gap):
        """
        At 1.2 % none of 64 flips is allowed to be as far: six equal gaps leave all open.
        """
        found = judged([[gap] * 6], "either", 0.012)

        assert (found.low[0], found.high[0], found.chance[0]) == (-math.inf, math.inf, 2 / 64)

    @pytest.mark.parametrize(("cells", "gap"), [(7, -0.1), (7, -0.3)])
    def test_rounding_makes_no_bound(self, cells, gap):
        """
        Seven equal gaps, of which no flip of 128 is allowed, either.
        """
        found = judged([[gap] * cells], "either", 0.012)

        assert (found.low[0], found.high[0]) == (-math.inf, math.inf)

    def test_units_that_agree_have_no_bound_where_another_pair_allows_all(self):
        """
        An input of three cells and five of one, in all of which the first pair differs alike; the
        second adds as much in each, and its flips leave nothing that contradicts the first.
        """
        found = judged([[-0.1] * 8, [-0.1] * 3 + [-0.3] * 5], "either", 0.012, units=[*"aaabcdef"])

        assert (found.low[0], found.high[0]) == (-math.inf, math.inf)

    def test_after_a_chance_that_is_just_the_level_limits_may_fall(self):
        """
        At 2 of 64 the first pair is proved, and the second is known as well as alone.
        """
        pairs = [[-1.0] * 6, [-1, -2, 3, -4, 5, -6]]
        found = judged(pairs, "either", 2 / 64)
        alone = judged(pairs[1:], "either", 2 / 64)

        assert found.chance[0] == 2 / 64
        assert (found.low[1], found.high[1]) == (alone.low[0], alone.high[0])

    def test_units_of_different_size_have_a_bound_where_0_is_contradicted(self):
        """
        One input of nine cells and five of one, which all add as much to the difference: one flip
        of 64 is as clear, so 0 is contradicted, and the interval has to end before it.
        """
        inputs = [*"aaaaaaaaa", *"bcdef"]
        found = judged([[-1 / 9] * 9 + [-1.0] * 5], "first", units=inputs)

        assert found.chance[0] == 1 / 64
        assert found.low[0] == -math.inf
        assert -6 / 14 < found.high[0] < 0


class TestLaws:
    """What must not matter, and what must follow."""

    @given(SEEDS, SIDES, st.floats(1e-6, 1e6))
    def test_the_scale_does_not_matter(self, seed, side, factor):
        """
        Percent or shares: the same chances, and intervals in the same unit.
        """
        gaps = drawn_gaps(seed)
        plain = judged(gaps, side)
        scaled = judged(factor * gaps, side)

        assert scaled.chance.tolist() == plain.chance.tolist()
        for name in ("difference", "low", "high"):
            expected = factor * getattr(plain, name)
            assert getattr(scaled, name) == pytest.approx(expected, abs=1e-9 * factor)

    @given(SEEDS, SIDES, st.randoms())
    def test_the_order_of_cells_does_not_matter(self, seed, side, random):
        """
        Of 13 units, whose flips are not all, and of seven with cells of one name.
        """
        for units in (names_of(13), [*names_of(7), *names_of(6)]):
            gaps = drawn_gaps(seed, 2, 13)
            order = random.sample(range(13), 13)

            plain = flip_tests(gaps, units, side=side, error=LEVEL)
            mixed = flip_tests(
                gaps[:, order], [units[place] for place in order], side=side, error=LEVEL
            )

            assert mixed.chance.tolist() == plain.chance.tolist()
            assert mixed.low == pytest.approx(plain.low)
            assert mixed.high == pytest.approx(plain.high)

    @given(SEEDS, SIDES, st.randoms())
    def test_the_names_of_units_do_not_matter_where_all_flips_are_made(self, seed, side, random):
        """
        To twelve units.
        """
        gaps = drawn_gaps(seed)
        names = random.sample(names_of(8), 8)

        assert judged(gaps, side, units=names).chance.tolist() == judged(gaps, side).chance.tolist()

    @given(SEEDS, SIDES, st.permutations(range(4)))
    def test_the_order_of_pairs_does_not_matter(self, seed, side, order):
        """
        Each keeps its numbers.
        """
        gaps = drawn_gaps(seed, 4)
        plain = judged(gaps, side)
        mixed = judged(gaps[order], side)

        assert mixed.chance.tolist() == plain.chance[order].tolist()
        assert mixed.low == pytest.approx(plain.low[order])

    @given(SEEDS)
    def test_who_is_named_first_does_not_matter_where_either_may_be_nearer(self, seed):
        """
        The mirror image: the same chance, the interval on the other side of 0.
        """
        gaps = drawn_gaps(seed)
        plain = judged(gaps)
        mirrored = judged(-gaps)

        assert mirrored.chance.tolist() == plain.chance.tolist()
        assert mirrored.low == pytest.approx(-plain.high)
        assert mirrored.high == pytest.approx(-plain.low)

    @given(SEEDS)
    def test_of_a_pair_not_both_are_nearer(self, seed):
        """
        One side's chance and the other's are 1 and what is seen itself; both sides' is twice the
        smaller one.
        """
        gaps = drawn_gaps(seed, 1)
        one, other = (judged(sign * gaps, "first").chance[0] for sign in (1, -1))

        assert one + other == pytest.approx(1 + 1 / 256)
        assert judged(gaps).chance[0] == pytest.approx(2 * min(one, other))

    @given(SEEDS, SIDES, st.integers(2, 5))
    def test_stepping_down_lies_between_one_test_alone_and_all_at_once(self, seed, side, pairs):
        """
        A family never gives, and what is proved already need not be paid for again.
        """
        gaps = drawn_gaps(seed, pairs)
        found = judged(gaps, side)
        alone = [judged([pair], side).chance[0] for pair in gaps]
        sums = gaps / 8
        scaled = sums / np.sqrt((sums**2).sum(axis=1, keepdims=True))
        flipped = -flip_signs(8) @ scaled.T
        flipped = flipped if side == "first" else np.abs(flipped)
        at_once = [
            (flipped.max(axis=1) >= distance(list(pair), side) - 1e-9).mean() for pair in sums
        ]

        assert (found.chance >= alone).all()
        assert (found.chance <= np.asarray(at_once) + 1e-12).all()
        clearest = min(range(pairs), key=lambda place: at_once[place])
        assert found.chance[clearest] == at_once[clearest]

    @given(SEEDS, SIDES)
    def test_what_is_clearer_has_the_smaller_chance(self, seed, side):
        """
        Never the other way round.
        """
        gaps = drawn_gaps(seed, 4)
        found = judged(gaps, side)
        clearest_first = sorted(range(4), key=lambda place: -distance(list(gaps[place]), side))

        assert (np.diff(found.chance[clearest_first]) >= 0).all()

    @given(SEEDS, SIDES)
    def test_a_pair_that_is_there_twice_counts_once(self, seed, side):
        """
        What pairs share is paid for once.
        """
        gaps = drawn_gaps(seed, 2)
        plain = judged(gaps, side)
        twice = judged(np.vstack([gaps, gaps[:1]]), side)

        assert twice.chance.tolist() == [*plain.chance, plain.chance[0]]
        assert twice.low[:2] == pytest.approx(plain.low)

    @given(SEEDS, SIDES, st.sampled_from([6, 8, 13]), st.sampled_from([0.05, 0.012]))
    def test_the_interval_leaves_0_out_where_the_chance_is_small(self, seed, side, cells, error):
        """
        And nowhere else: what is printed is what was tested.
        """
        found = judged(drawn_gaps(seed, 3, cells), side, error)
        assume(np.abs(found.high).min() > 1e-9)
        excluded = found.high < 0
        if side == "either":
            excluded |= found.low > 0

        assert excluded.tolist() == (found.chance <= error).tolist()

    @given(SEEDS, SIDES)
    def test_the_difference_lies_inside_its_interval(self, seed, side):
        """
        And both ends are as far from it, as the test counts.
        """
        gaps = drawn_gaps(seed, 3)
        found = judged(gaps, side)

        assert (found.low <= found.difference + 1e-12).all()
        assert (found.difference <= found.high + 1e-12).all()
        for pair, low, high in zip(gaps, found.low, found.high, strict=True):
            if np.isfinite(low):
                assert distance(list(pair - low), "either") == pytest.approx(
                    distance(list(pair - high), "either")
                )

    @given(SEEDS)
    def test_a_family_widens_intervals(self, seed):
        """
        A pair beside others is known no better than alone.
        """
        gaps = drawn_gaps(seed, 3)
        found = judged(gaps)
        alone = judged(gaps[:1])

        assert found.low[0] <= alone.low[0] + 1e-12
        assert found.high[0] >= alone.high[0] - 1e-12

    @given(SEEDS, st.sampled_from([6, 9, 13]))
    def test_each_pair_alone_is_a_family_of_its_own(self, seed, cells):
        """
        As controls ask it.
        """
        gaps = drawn_gaps(seed, 3, cells)
        units = names_of(cells)

        alone = [
            flip_tests(pair[None], units, side="first", error=LEVEL).chance[0] for pair in gaps
        ]
        assert flip_chances(gaps, units).tolist() == alone

    @pytest.mark.parametrize(
        ("gaps", "chance"),
        [([-1, -2, -3, -4, -5, -6], 1), ([-1, -2, -3, -4, -5, 6], 14), ([1, 2, 3, 4, 5, 6], 64),
         ([-0.1] * 6, 1), ([-0.7, -0.7, -0.7, -0.7, -0.7, 0.7], 7), ([0.3] * 5 + [-0.3], 63)],
    )  # fmt: skip
    def test_alone_six_units_are_counted_by_hand(self, gaps, chance):
        """
        Each beside another pair, whose size does not matter.
        """
        beside = np.asarray([gaps, [9.0, -8, 7, -6, 5, -4]])

        assert flip_chances(beside, names_of(6))[0] == chance / 64

    def test_pairs_without_a_gap_are_all_chance_alone(self):
        """
        No division by nothing.
        """
        assert flip_chances(np.zeros((2, 6)), names_of(6)).tolist() == [1, 1]

    def test_units_of_several_cells_are_flipped_together(self):
        """
        Twelve cells of six inputs are six units: one flip of 64, not one of 4,096.
        """
        gaps = [[-0.1] * 12]
        inputs = [name for name in "abcdef" for _ in range(2)]

        assert judged(gaps, "first", units=inputs).chance.tolist() == [1 / 64]
        assert flip_chances(np.asarray(gaps), inputs).tolist() == [1 / 64]
        assert judged(gaps, "first").chance.tolist() == [1 / 4096]


FAMILIES = 800
CHANCE = 3 * math.sqrt(0.05 * 0.95 / FAMILIES)  # three standard errors


class TestSimulated:
    """What verdicts and intervals are worth."""

    @pytest.mark.parametrize(("cells", "side"), [(6, "first"), (7, "either"), (9, "either")])
    def test_of_equal_models_some_pair_is_nearer_in_one_family_of_twenty(self, cells, side):
        """
        A/A: three models whose errors are drawn alike, with long tails.
        """
        generator = np.random.default_rng(cells)
        alarms = 0
        for _ in range(FAMILIES):
            errors = generator.standard_exponential((3, cells))
            gaps = errors[[0, 0, 1]] - errors[[1, 2, 2]]
            alarms += (judged(gaps, side).chance <= LEVEL).any()

        assert alarms / FAMILIES <= LEVEL + CHANCE
        assert alarms

    def test_of_more_units_than_can_all_be_flipped_too(self):
        """
        Asked alone, of 24 cells: the first is nearer in 5 % of the families.
        """
        gaps = np.random.default_rng(24).laplace(size=(FAMILIES, 24))

        alarms = (flip_chances(gaps, names_of(24)) <= LEVEL).mean()
        assert abs(alarms - LEVEL) <= CHANCE

    @pytest.mark.parametrize("cells", [7, 10, 16])
    @pytest.mark.parametrize("level", [0.0, 0.3, 2.0])
    def test_the_interval_covers_what_is_true(self, cells, level):
        """
        Of two-sided tests in about 95 of 100 cases, wherever the truth lies.
        """
        generator = np.random.default_rng([cells, int(10 * level)])
        runs = 400
        covered = 0
        for _ in range(runs):
            found = judged(level + generator.standard_normal((1, cells)))
            covered += found.low[0] <= level <= found.high[0]

        assert 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs) <= covered / runs

    def test_what_is_true_is_found(self):
        """
        A gain of one standard deviation over 12 cells, asked alone: in nine of ten cases.
        """
        gaps = np.random.default_rng(12).standard_normal((400, 12)) - 1

        assert (flip_chances(gaps, names_of(12)) <= LEVEL).mean() > 0.9


class TestNormalDraws:
    """Draws that anybody can make again."""

    def test_the_first_is_made_of_the_digest_by_hand(self):
        """
        OpenSSL's SHAKE-256 of `perfect` begins with these four numbers of 64 bits.
        """
        digest = (0x66FF65936D357FAB, 0x0A7D48605EEA1F11, 0x66F60D1FC7EC3EF4, 0x8EC97A23DC597F3B)
        radius, turn, next_radius, next_turn = (((bits >> 11) + 0.5) / 2**53 for bits in digest)

        def normal(first, second):
            return math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)

        expected = [normal(radius, turn), normal(next_radius, next_turn)]
        assert normal_draws("perfect", 1)[:2, 0] == pytest.approx(expected, rel=1e-12)

    def test_lie_draw_by_draw_and_cell_by_cell(self):
        """
        200 draws: of more cells the same numbers go on.
        """
        one, three = normal_draws("coin", 1), normal_draws("coin", 3)

        assert (one.shape, three.shape) == ((DRAWS, 1), (DRAWS, 3))
        assert three.ravel()[:DRAWS].tolist() == one.ravel().tolist()

    def test_are_normal(self):
        """
        2,400 of them: mean 0, deviation 1, a third beyond one deviation, both signs alike.
        """
        draws = normal_draws("perfect", 12)

        assert abs(draws.mean()) < 3 / math.sqrt(2400)
        assert draws.std() == pytest.approx(1, abs=0.05)
        assert (np.abs(draws) > 1).mean() == pytest.approx(0.317, abs=0.03)
        assert (np.abs(draws) > 1.96).mean() == pytest.approx(0.05, abs=0.015)

    def test_each_name_has_its_own(self):
        """
        Nothing in common.
        """
        correlation = np.corrcoef(normal_draws("coin", 6).ravel(), normal_draws("x", 6).ravel())

        assert abs(correlation[0, 1]) < 0.1

    def test_nobody_can_change_them(self):
        """
        They are made once for all.
        """
        assert normal_draws("perfect", 2) is normal_draws("perfect", 2)
        with pytest.raises(ValueError, match="read-only"):
            normal_draws("perfect", 2)[0, 0] = 0


def test_numbers_that_docs_state():
    """
    Fewest units, all flips to, flips and draws: anybody who computes again needs the same.
    """
    assert (FEWEST_UNITS, ALL_FLIPS_TO, FLIPS, DRAWS) == (6, 12, 4096, 200)
