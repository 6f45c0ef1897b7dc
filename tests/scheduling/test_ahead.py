"""How far a beam search looks ahead."""

from fairseq_aggdec.scheduling.ahead import AheadGoodput
from fairseq_aggdec.scheduling.costs import Costs, DraftCost


def learnt(schedule: AheadGoodput, used: float, goes_on: float, drafted: bool = False) -> AheadGoodput:
    """The schedule after 400 passes that looked ten steps ahead.

    Args:
        schedule: new.
        used: share of prefixes, of each distance.
        goes_on: how often the search went past each step ahead that it came to.
        drafted: whether there were drafts.
    """
    for number in range(400):
        for distance in range(1, 11):
            schedule.learn_use(distance, number < 400 * used, drafted)
        made = next((step for step in range(10) if number % 20 >= 20 * goes_on ** (step + 1)), 10)
        schedule.learn_steps(10, 1 + made, drafted)
    return schedule


def steps(schedule: AheadGoodput, sentences: int = 1, prefixes: int = 5) -> int:
    """How many steps of five prefixes are worth it."""
    reach = schedule.reach(sentences, drafted=False)
    count = 0
    while count < 40 and reach.pays(prefixes):
        reach.go_on(prefixes)
        count += 1
    return count


def test_the_better_the_guesses_the_further() -> None:
    good, bad, wrong = (
        steps(learnt(AheadGoodput(Costs(40.0)), *rates)) for rates in ((0.95, 0.95), (0.5, 0.5), (0.02, 0.02))
    )
    assert good > 10 > bad > 1
    assert wrong == 0


def test_many_sentences_share_what_is_paid_once() -> None:
    schedule = learnt(AheadGoodput(Costs(40.0)), 0.8, 0.8)
    assert steps(schedule) > steps(schedule, sentences=8) > steps(schedule, sentences=64) == 0


def test_steps_that_need_no_new_prefix_are_always_looked_at() -> None:
    assert steps(learnt(AheadGoodput(Costs(40.0)), 0.2, 0.2), sentences=64, prefixes=0) == 40


def test_a_drafter_is_asked_where_it_makes_up_for_its_cost() -> None:
    def pays(call: float, sentences: int = 1) -> bool:
        costs = Costs(40.0, draft=DraftCost(10, call=call, token=0.5))
        schedule = learnt(AheadGoodput(costs), 0.5, 0.2)
        return learnt(schedule, 0.8, 0.7, drafted=True).draft_pays(5, sentences)

    assert pays(call=20.0)
    assert not pays(call=500.0)
    assert not pays(call=20.0, sentences=64)
