"""Word families (noun number, verb forms, adverbs, comparatives) found in a vocabulary by spelling rules.

No part-of-speech tagger is needed: a word counts as a verb when its base, -s, past and -ing forms all occur in the
vocabulary, and as a noun when its singular and plural do. Irregular forms and a core list make the rules work for a
corpus of any size.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fairseq_aggdec.data.word_tables import word_set

VOWELS = frozenset("aeiou")

_IRREGULAR_VERBS = """
be was been; become became become; begin began begun; break broke broken; bring brought brought; build built built;
buy bought bought; catch caught caught; choose chose chosen; come came come; cost cost cost; cut cut cut;
deal dealt dealt; do did done; draw drew drawn; drink drank drunk; drive drove driven; eat ate eaten;
fall fell fallen; feed fed fed; feel felt felt; fight fought fought; find found found; fly flew flown;
forget forgot forgotten; forgive forgave forgiven; get got got; give gave given; go went gone; grow grew grown;
hang hung hung; have had had; hear heard heard; hide hid hidden; hit hit hit; hold held held; hurt hurt hurt;
keep kept kept; know knew known; lay laid laid; lead led led; leave left left; lend lent lent; let let let;
lie lay lain; lose lost lost; make made made; mean meant meant; meet met met; pay paid paid; put put put;
quit quit quit; read read read; ride rode ridden; ring rang rung; rise rose risen; run ran run; say said said;
see saw seen; seek sought sought; sell sold sold; send sent sent; set set set; shake shook shaken; shine shone shone;
shoot shot shot; show showed shown; shut shut shut; sing sang sung; sink sank sunk; sit sat sat; sleep slept slept;
speak spoke spoken; spend spent spent; spread spread spread; stand stood stood; steal stole stolen; stick stuck stuck;
strike struck struck; swim swam swum; take took taken; teach taught taught; tear tore torn; tell told told;
think thought thought; throw threw thrown; understand understood understood; wake woke woken; wear wore worn;
win won won; write wrote written; overcome overcame overcome; arise arose arisen; bear bore borne; beat beat beaten;
bend bent bent; bite bit bitten; blow blew blown; dream dreamt dreamt; freeze froze frozen; spoil spoilt spoilt;
swear swore sworn; sweep swept swept; withdraw withdrew withdrawn; mistake mistook mistaken;
undergo underwent undergone
"""

_CORE_VERBS = """
accept achieve add affect agree allow answer appear apply argue ask attend attract avoid believe belong call care
carry cause change check choose clean compare concentrate consider contain continue control cook create decide
decrease depend describe destroy develop die disagree discover discuss earn encourage end enjoy enter exist expect
explain express face fail finish focus follow force gain happen hate help hope imagine improve include increase
influence inform introduce invent involve join jump kill learn like listen live look love manage marry mention miss
move need notice offer open order own pass plan play practice prefer prepare prevent produce promise protect prove
provide raise reach realize receive recognize reduce refuse relax remember repeat replace require rest result return
save seem serve share smoke solve start state stay stop study succeed suffer suggest support suppose talk thank touch
train travel treat trust try turn use visit wait walk want waste watch wish wonder work worry
"""

_CORE_NOUNS = """
accident activity advantage advertisement age animal answer area article aspect author bag behavior benefit bike boat
body book boss boy brother building bus business camera car career case cause chance change character child choice
city class computer concept condition consumer country course culture customer day decision degree difference
difficulty disadvantage disease doctor dream effect employee event exam example experience fact factor family farmer
father feature field film fish flower foreigner friend game generation girl goal government group guide habit hand
hobby home hotel hour house human idea individual invention island issue job key kind language law leader lecture
lesson letter level life list machine magazine man manager member message method mind minute mistake month mother
movie name neighbor object opinion opportunity option paper parent park part party patient person place plan plant
player point policy politician possibility problem process product professor program project question reason
relationship resource restaurant result risk road room rule school scientist season service shop side situation skill
society solution song sport star state statement step story street student subject system task teacher team technology
test theory thing ticket tool tour tourist town toy trip tree type university value vegetable vehicle view village way
week woman word worker year
"""

_IRREGULAR_PLURALS = """
man men; woman women; child children; person people; foot feet; tooth teeth; mouse mice; life lives; wife wives;
knife knives; leaf leaves; half halves; self selves; wolf wolves; shelf shelves; thief thieves; goose geese;
hero heroes; potato potatoes; tomato tomatoes; echo echoes; crisis crises; phenomenon phenomena
"""
IRREGULAR_PLURALS: dict[str, str] = dict(e.split() for e in _IRREGULAR_PLURALS.split(";"))
"""{singular: plural}"""

_CORE_ADJECTIVES = word_set("easy cheap big old young high large")
"""Adjectives whose comparatives are known even if the corpus does not show them."""
_CORE_ADVERB_STEMS = word_set("easy quick slow careful serious real usual general")
_NOT_ADJECTIVES = word_set("hard late near love like cost live hour even bare scarce express dead part present lone")
"""Words whose -ly form is another word."""
_IRREGULAR_COMPARATIVES: dict[str, tuple[str, ...]] = {
    "better": ("more better", "more good", "gooder"),
    "best": ("most best", "most good", "better"),
    "worse": ("more worse", "more bad", "worser"),
    "worst": ("most worst", "most bad", "worse"),
}

_NOT_NOUNS = word_set(
    """
    a an the i he she it we you they hi me my his her its our their this that these those as is was has us no so to
    too be do does go ha yes not now then than there here where when what who how why which while with will would
    can could shall should may might must and or but if for from in on at of by up out off over under into about
    after before again also always never often very well just only even still yet much many more most less few some
    any all both each every other such same own good great old new bad big long little high small large young full
    able sure one two three four five six seven eight nine ten let did done had have been being were are am don't
    perhaps whole glad since because though although until upon between through during against without within toward
    towards across among
    """
)
_DOUBLING = word_set(
    """
    begin prefer refer occur admit permit commit control forget regret travel cancel quarrel submit transfer equip
    """
)


@dataclass(frozen=True)
class VerbForms:
    """The five forms of one verb."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str


def add_s(word: str) -> str:
    """The regular plural of a noun, or the third person of a verb."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if len(word) > 1 and word[-1] == "y" and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + ("es" if word in ("go", "do") else "s")


def _doubles(word: str) -> bool:
    """Whether the last consonant doubles before -ed and -ing (stop, begin)."""
    if word in _DOUBLING:
        return True
    if len(word) < 3 or word[-1] in "aeiouwxy" or word[-2] not in VOWELS or word[-3] in VOWELS:
        return False
    return sum(letter in "aeiouy" for letter in word) == 1


def add_ing(verb: str) -> str:
    """The -ing form of a verb's base form."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and len(verb) > 2:
        return verb[:-1] + "ing"
    return verb + (verb[-1] if _doubles(verb) else "") + "ing"


def add_ed(verb: str) -> str:
    """The regular past of a verb's base form."""
    if verb.endswith("e"):
        return verb + "d"
    if len(verb) > 1 and verb[-1] == "y" and verb[-2] not in VOWELS:
        return verb[:-1] + "ied"
    return verb + (verb[-1] if _doubles(verb) else "") + "ed"


def plural(noun: str) -> str:
    """The plural of a noun, irregular ones included."""
    return IRREGULAR_PLURALS.get(noun) or add_s(noun)


def adverb(adjective: str) -> str:
    """The -ly adverb of an adjective."""
    if adjective.endswith("y") and len(adjective) > 3:
        return adjective[:-1] + "ily"
    if adjective.endswith("le"):
        return adjective[:-1] + "y"
    return adjective + ("ally" if adjective.endswith("ic") else "ly")


def compared(adjective: str) -> tuple[str, str]:
    """The comparative and superlative in -er and -est."""
    if adjective.endswith("y"):
        stem = adjective[:-1] + "i"
    elif adjective.endswith("e"):
        stem = adjective[:-1]
    else:
        stem = adjective + (adjective[-1] if _doubles(adjective) else "")
    return stem + "er", stem + "est"


IRREGULAR_VERBS: dict[str, tuple[str, str]] = {
    base: (past, participle) for base, past, participle in (entry.split() for entry in _IRREGULAR_VERBS.split(";"))
}
"""{base: (past, participle)}"""


def _verb(base: str) -> VerbForms:
    past, participle = IRREGULAR_VERBS.get(base) or (add_ed(base), add_ed(base))
    return VerbForms(base, {"have": "has", "be": "is"}.get(base) or add_s(base), past, participle, add_ing(base))


@dataclass(frozen=True)
class WordFamilies:
    """What is inflected from what; all keys are lower-case words."""

    plurals: dict[str, str]
    """singular -> plural"""
    singulars: dict[str, str]
    """plural -> singular"""
    verbs: dict[str, VerbForms]
    """any form of a verb -> its forms (be, have and do excepted: agreement has them)"""
    adverbs: dict[str, str]
    """adjective -> adverb"""
    adjectives: dict[str, str]
    """adverb -> adjective"""
    comparatives: dict[str, tuple[str, ...]]
    """comparative or superlative -> wrong forms (more easier)"""


def _verb_bases(known: Collection[str]) -> list[str]:
    bases = dict.fromkeys([*_CORE_VERBS.split(), *IRREGULAR_VERBS])
    for word in known:
        # All four forms must be in use: "bed" and "king" then name no verb.
        if len(word) < 3 or word in bases or word in _NOT_NOUNS or word.endswith(("ing", "ed")) or not word.isascii():
            continue
        if add_ing(word) in known and add_ed(word) in known and add_s(word) in known:
            bases[word] = None
    return [base for base in bases if base not in ("be", "have", "do")]


def _noun_bases(known: Collection[str]) -> list[str]:
    bases = dict.fromkeys([*_CORE_NOUNS.split(), *IRREGULAR_PLURALS])
    for word in known:
        if len(word) < 3 or word in bases or word in _NOT_NOUNS or word.endswith(("ss", "ous", "ing")) or "'" in word:
            continue
        if add_s(word) in known:
            bases[word] = None
    return list(bases)


def word_families(vocabulary: Collection[str]) -> WordFamilies:
    """Finds the inflections of the words in a vocabulary (lower-case); deterministic in the vocabulary's order."""
    known = dict.fromkeys(vocabulary)
    verbs: dict[str, VerbForms] = {}
    for base in _verb_bases(known):
        forms = _verb(base)
        for form in (forms.base, forms.third, forms.past, forms.participle, forms.gerund):
            verbs.setdefault(form, forms)
    plurals: dict[str, str] = {}
    noun_first = word_set(_CORE_NOUNS)
    for noun in _noun_bases(known):
        # What is both (the help, to help) counts as a verb unless it is a core noun.
        if noun in noun_first or noun not in verbs or noun in IRREGULAR_PLURALS:
            plurals[noun] = plural(noun)
    adverbs = {
        word: adverb(word)
        for word in known
        if len(word) > 3
        and word not in plurals
        and not word.endswith("ly")
        and adverb(word) in known
        and word not in _NOT_ADJECTIVES
    }
    adverbs.update({word: adverb(word) for word in sorted(_CORE_ADVERB_STEMS)})
    adverbs["good"] = "well"
    comparatives = dict(_IRREGULAR_COMPARATIVES)
    for word in dict.fromkeys([*known, *sorted(_CORE_ADJECTIVES)]):
        more, most = compared(word)
        if len(word) > 2 and (word in _CORE_ADJECTIVES or (more in known and most in known)):
            comparatives[more] = ("more " + more, "more " + word, most, word)
            comparatives[most] = ("most " + most, "most " + word, more)
    return WordFamilies(
        plurals=plurals,
        singulars={many: one for one, many in plurals.items()},
        verbs=verbs,
        adverbs=adverbs,
        adjectives={ly: word for word, ly in adverbs.items()},
        comparatives=comparatives,
    )
