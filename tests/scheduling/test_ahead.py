"""How far a beam search looks ahead."""

from fairseq_aggdec.scheduling.ahead import AheadGoodput
from fairseq_aggdec.scheduling.costs import Costs, DraftCost


def learnt(schedule: AheadGoodput, used: list[float], drafted: bool = False) -> AheadGoodput:
    """The schedule after 400 prefixes of each distance, of which so large a share was used."""
    for distance, share in enumerate(used, start=1):
        for number in range(400):
            schedule.learn([(distance, number < 400 * share)], drafted)
    return schedule


def steps(schedule: AheadGoodput, sentences: int = 1) -> int:
    """How many steps of five prefixes are worth it."""
    reach = schedule.reach(5, sentences, drafted=False)
    count = 0
    while count < 40 and reach.pays():
        reach.extend(5)
        count += 1
    return count


def test_the_better_the_guesses_the_further() -> None:
    good, bad, wrong = (steps(learnt(AheadGoodput(Costs(40.0)), [share] * 24)) for share in (0.9, 0.17, 0.02))
    assert good > 15 > 3 <= bad < good
    assert wrong == 0


def test_prefixes_are_free_while_weights_are_read_from_memory() -> None:
    """Even those that are hardly ever used; behind them a step has to promise something."""
    schedule = learnt(AheadGoodput(Costs(1.0, read=20.0)), [0.05] * 24)
    assert steps(schedule) == 3
    assert steps(schedule, sentences=4) == 0


def test_a_drafter_is_asked_where_it_makes_up_for_its_cost() -> None:
    def pays(call: float, sentences: int = 1) -> bool:
        costs = Costs(40.0, draft=DraftCost(10, call=call, token=0.5))
        schedule = learnt(AheadGoodput(costs), [0.5, 0.2, 0.1] + [0.0] * 21)
        return learnt(schedule, [0.8, 0.7, 0.6, 0.5] + [0.3] * 20, drafted=True).draft_pays(5, sentences)

    assert pays(call=20.0)
    assert not pays(call=1000.0)
    assert not pays(call=20.0, sentences=64)
