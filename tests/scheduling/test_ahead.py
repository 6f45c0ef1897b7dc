"""How far a beam search looks ahead."""

from fairseq_aggdec.scheduling.ahead import AheadGoodput
from fairseq_aggdec.scheduling.costs import Costs, DraftCost


def learnt(schedule: AheadGoodput, shares: list[float], drafted: bool = False) -> AheadGoodput:
    """The schedule after 200 prefixes of every distance, of which this share was used."""
    for distance, share in enumerate(shares, start=1):
        for number in range(200):
            schedule.learn(distance, number < 200 * share, drafted)
    return schedule


def steps(schedule: AheadGoodput, sentences: int = 1) -> int:
    """How many steps of five prefixes are worth it."""
    group = [5]
    while schedule.is_worth_it([*group, 5], sentences, False):
        group.append(5)
    return len(group) - 1


def test_shares_are_those_that_were_seen_and_neighbours_tell_of_the_unseen() -> None:
    shares = learnt(AheadGoodput(Costs(40.0)), [0.9, 0.5]).shares(False)
    assert shares[0] == 1.0
    assert abs(shares[1] - 0.9) < 0.01
    assert abs(shares[2] - 0.5) < 0.02
    assert shares[3] == shares[2]


def test_the_better_the_guesses_the_further() -> None:
    good, bad, wrong = ([share] * 23 for share in (0.9, 0.17, 0.02))
    distances = [steps(learnt(AheadGoodput(Costs(40.0)), shares)) for shares in (good, bad, wrong)]
    assert distances[0] > 15 > 3 <= distances[1] < distances[0]
    assert distances[2] == 0


def test_many_sentences_share_what_is_paid_once() -> None:
    schedule = learnt(AheadGoodput(Costs(40.0)), [0.8] * 23)
    assert steps(schedule) > steps(schedule, 8) > steps(schedule, 64) == 0


def test_a_drafter_is_asked_where_it_makes_up_for_its_cost() -> None:
    def pays(call: float, sentences: int = 1) -> bool:
        costs = Costs(40.0, draft=DraftCost(10, call=call, token=0.5))
        schedule = learnt(AheadGoodput(costs), [0.5, 0.2, 0.1] + [0.0] * 20)
        return learnt(schedule, [0.8, 0.7, 0.6, 0.5] + [0.3] * 19, drafted=True).draft_pays(5, sentences)

    assert pays(call=20.0)
    assert not pays(call=500.0)
    assert not pays(call=20.0, sentences=64)
