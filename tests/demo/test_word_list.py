"""The list of English words, and texts in other languages."""

import pytest

from fairseq_aggdec.demo.word_list import foreign


@pytest.mark.parametrize(
    "sentence",
    [
        "Ich habe heute leider keine Zeit.", "Je ne sais pas où il habite.", "Non so dove abita tuo fratello.",
        "Mi hermano vive en una casa grande cerca del mar.", "Eu não sei o que ela quer de mim.",
        "Waar heb je mijn sleutels neergelegd?", "Jag vet inte var han bor nu.", "Hvor er du henne i aften?",
        "En tiedä missä hän asuu.", "Nem tudom, hol lakik most.", "Nie wiem, gdzie on teraz mieszka.",
        "Nevím, kde teď bydlí.", "Nu știu unde locuiește acum.", "Nerede yaşadığını bilmiyorum ama öğreneceğim.",
        "Tôi không biết anh ấy sống ở đâu.", "Saya tidak tahu di mana dia tinggal sekarang.",
        "Hindi ko alam kung saan siya nakatira.", "Sijui anaishi wapi sasa.", "Ne znam gdje on sada živi.",
        "Я не знаю, где он живёт.", "Ek weet nie waar hy nou bly nie.",
    ],
)  # fmt: skip
def test_other_languages_are_told_from_english(sentence: str) -> None:
    assert str(foreign(sentence)).startswith("not English: ")


@pytest.mark.parametrize(
    "sentence",
    [
        "i beleive thier goverment is wrong", "Tom won the triathlon.", "Nkechi Adebayo, Ngozi Okafor and Uwe Weiß",
        "Ich auch.", "She dont likes alot of vegetabels.", "",
    ],
)  # fmt: skip
def test_misspelt_english_and_names_are_no_other_language(sentence: str) -> None:
    assert foreign(sentence) is None
