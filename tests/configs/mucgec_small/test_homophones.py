from random import Random

from configs.mucgec_small.sentences.homophones import Homophones, near_sound, readings

SOUNDS = {"在": ["zai"], "再": ["zai"], "债": ["zhai"], "人": ["ren"], "地": ["di", "de"], "的": ["de"]}


def test_near_sounds() -> None:
    pairs = [("zhang", "zan"), ("chi", "ci"), ("shen", "seng"), ("ren", "leng"), ("nan", "lan")]
    assert all(near_sound(one) == near_sound(other) for one, other in pairs)
    assert near_sound("zan") != near_sound("can")


def test_characters_that_sound_alike() -> None:
    homophones = Homophones({"再": 90}, SOUNDS, near_share=0.5)
    drawn = {homophones.of("在", Random(seed)) for seed in range(200)}
    assert drawn == {"", "再", "债"}
    exact = Homophones({}, SOUNDS, near_share=0)
    assert {exact.of("地", Random(seed)) for seed in range(200)} == {"", "的"}  # by its second reading
    assert {exact.of("人", Random(seed)) for seed in range(20)} == {""}


def test_readings_without_tones() -> None:
    found = readings("在再地了")
    assert found["在"] == found["再"] == ["zai"]
    assert set(found["地"]) == {"di", "de"}
    assert len(found["了"]) == 2
