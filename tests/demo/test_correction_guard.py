"""Which edits of the shipped corrector are kept."""

import pytest

from fairseq_aggdec.demo.correction_guard import trusted


@pytest.mark.parametrize(
    "source, output, kept",
    [
        # numbers, code and the ends of what is no sentence stay
        ("Dear Anna,", "Dear Anna,.", "Dear Anna,"),
        ("my holiday in the snow 🎿", "My holidays in the snow. 🎿", "my holidays in the snow 🎿"),
        ("i has a dog", "I have a dog.", "I have a dog"),
        ('he said "go."', 'He said "goes."', 'He said "goes."'),
        ("The 2 key are ab12-ef, it go.", "The 20 keys are ab12, it goes.", "The 2 keys are ab12-ef, it goes."),
        ("It cost 5€ more.", "It costs 5€ , 5 more.", "It costs 5€ more."),
        ("See foo_bar, they is in a.b/c.", "See fobar, they are in a.b.", "See foo_bar, they are in a.b/c."),
        ("Call `for i in x`, it are ok.", "Call `for I in x`, it is ok.", "Call `for i in x`, it is ok."),
        ("I like it.But he go.", "I like it. But he goes.", "I like it. But he goes."),
        # so do names, cells and the words of others
        ("Ralf", "??", "Ralf"),
        ("Dear Ralf,", "Dear python,", "Dear Ralf,"),
        ("From: Ralf", "From: Hurstwood", "From: Ralf"),
        ("Ralf have a dog.", "Half has a dog.", "Ralf has a dog."),
        ("Then Tomasz Wiśniewski come in.", "Then Tom asz Wiśniewski comes in.", "Then Tomasz Wiśniewski comes in."),
        ("By this Agreement we agrees.", "By this algement we agree.", "By this Agreement we agree."),
        ("The Lessee pay.", "The lessee pays.", "The Lessee pays."),
        ("He learn in britain.", "He learns in brain.", "He learns in britain."),
        ("I ask kwame about it.", "I asked about it.", "I ask kwame about it."),
        ("| speed | 2.9 |", "| speeds | 2.9, |", "| speed | 2.9 |"),
        ("speed\t2.9\thigh", "speed\t2.9,\thighs", "speed\t2.9\thigh"),
        ("In 1990 he live here.", "In 1990, he lives here.", "In 1990 he lives here."),
        ("We do not need two key.", "We need three keys.", "We do not need two keys."),
        ("He never go.", "He goes.", "He never go."),
        ("* call mum", "* Call mum.", "* call mum"),
        ("1. she call mum.", "1. She calls mum.", "1. she calls mum."),
        ("Sinner beats Alcaraz Again", "Winner beat Alcaraz Again.", "Sinner beats Alcaraz Again"),
        ("git rebase --onto main", "get rebase --onto main", "git rebase --onto main"),
        ("> She have two brother.", "> She has two brothers.", "> She have two brother."),
        ('She say to me "yes" now.', "She says to me yes now.", 'She says to me "yes" now.'),
        # misspellings, capitals and words written apart are corrected
        *((wrong, right, right) for wrong, right in [
            ("She speak english.", "She speaks English."),
            ("I dont know alot.", "I don't know a lot."),
            ("Yesterday I buyed it.", "Yesterday I bought it."),
            ("Altough it was late, they came.", "Although it was late, they came."),
            ("On monday we recieved thier letter.", "On Monday we received their letter."),
            ("Infact, nobody can beleive it.", "In fact, nobody can believe it."),
        ]),
    ],
)  # fmt: skip
def test_a_small_model_is_trusted_with_some_edits(
    source: str, output: str, kept: str
) -> None:
    assert trusted(source, output) == kept
