"""Learner confusions of closed-class words, as plain tables.

Each table maps a lower-case correct word to what a learner may write in its place. The error classes are those of the
NUCLE/ERRANT tradition (determiners, prepositions, agreement, pronouns, conjunctions, quantifiers, homophones); the
entries are this project's own.
"""

from __future__ import annotations

from fairseq_aggdec.data.word_tables import replacement_table, word_set

ARTICLES = frozenset({"a", "an", "the"})

DETERMINERS = ARTICLES | word_set(
    """
    this that these those my your his her its our their some any no every each another many much few several all
    both more most less which what whose one two three four five six ten such
    """
)
"""Words after which no article is inserted and a noun, not a verb, is expected."""

PREPOSITIONS = replacement_table(
    """
    in: on, at, of, into, for; on: in, at, about, of, to; at: in, on, to; to: for, at, in, into, of;
    for: to, of, about; of: in, for, from, on, about; from: of, in, since; with: by, to, of, and; by: with, from, for;
    about: of, on, for; into: in, to; than: then, that; since: for, from; during: in, for; until: to, till;
    between: among, in; among: between, in; through: by, in; over: on, about; under: below, in; without: with no, out;
    toward: to, for; towards: to, for; against: to, with; within: in, inside; like: as, likes; as: like, for;
    upon: in, to; around: about, in; across: in, through
    """,
    separator=",",
)

OPTIONAL_PREPOSITIONS = word_set("in on at to for of from with about by")
"""Prepositions that learners leave out."""

SPURIOUS_PREPOSITIONS = replacement_table(
    """
    discuss: about; discussed: about; mention: about; mentioned: about; enter: to, into; entered: to, into; reach: to;
    reached: to; marry: with; married: with; answer: to; answered: to; ask: to; asked: to; tell: to; told: to;
    help: to; helped: to; affect: to; affects: to; influence: to; need: of; needs: of; contact: with; lack: of;
    visit: to; visited: to; join: to; joined: to; teach: to; face: with; obey: to; resemble: to; approach: to;
    explain: about; emphasize: on; study: about; studied: about; concern: about; request: for; attend: to;
    attended: to; enjoy: with; go: to; went: to; come: to; came: to; spend: in; solve: of; follow: to; followed: to;
    meet: with; met: with; leave: from
    """,
    separator=",",
)
"""Words after which learners add a preposition that English does not want."""

AGREEMENT = replacement_table(
    """
    is: are, are, be; are: is, is, be; was: were; were: was; has: have; have: has; does: do; do: does; isn't: aren't;
    aren't: isn't; wasn't: weren't; weren't: wasn't; hasn't: haven't; haven't: hasn't; doesn't: don't; don't: doesn't;
    am: is, are
    """,
    separator=",",
)

MODALS = word_set("can could will would shall should may might must")
AUXILIARIES = word_set("is are was were be been being am has have had do does did will would can could should")
"""Words that learners leave out before a verb form."""

PRONOUNS = replacement_table(
    """
    he: she, it, his, him; she: he, her; him: he, his; his: her, he, him, their; her: his, she, their;
    they: it, he, them, we; them: they, it, him; their: his, its, them, our; we: us, our, they; us: we, our;
    our: us, we, their; i: me, my; me: I, my; my: me, mine; it: they, this, he; its: it, their, his; your: you, our;
    you: your; himself: hisself, him; themselves: them, theirself, himself; myself: me, mine; ourselves: us;
    who: which, that, whom; which: that, who, what, where; that: which, what, who; whose: who, which;
    what: that, which; where: which, that; this: these, that, it; these: this, those; those: that, these, this;
    itself: it, its; another: other, an other; other: another, others; others: other, another;
    everyone: every one, everyones; anyone: any one; someone: some one
    """,
    separator=",",
)

HOMOPHONES = replacement_table(
    """
    there: their, they're; their: there, they're, the; they're: their, there, they are; your: you're, you; you're: your;
    its: it's, it; it's: its, it; then: than; than: then; to: too; too: to; two: to, too; who's: whose; whose: who's;
    here: hear; hear: here; were: where, we're; where: were, wear; we're: were; off: of; weather: whether;
    whether: weather, wether; lose: loose; loose: lose; quite: quiet; quiet: quite; affect: effect; effect: affect;
    effects: affects; accept: except; except: accept; advice: advise; advise: advice; past: passed; passed: past;
    right: write; write: right; know: now, no; now: know; no: not; knew: new; new: knew; buy: by; by: buy;
    piece: peace; peace: piece; would: wood; week: weak; weak: week; break: brake; principal: principle;
    principle: principal; whole: hole; meet: meat; meat: meet; see: sea; sea: see; sun: son; son: sun; wait: weight;
    weight: wait; won: one; threw: through; through: threw, thought; though: thought, through; thought: though, taught;
    live: life, leave; life: live; lives: lifes, live; leave: live; choose: chose; chose: choose; lead: led; led: lead;
    sit: seat; fill: feel; feel: fell, fill; fell: feel; form: from; from: form; think: thing; thing: think;
    things: thinks; this: these; these: this; an: a; are: our; our: are; want: went, won't; went: want, when;
    when: went; with: whit; has: as; they: the; bad: bed; bed: bad; man: men; men: man;
    woman: women; women: woman; personal: personnel; especially: specially; later: latter; latter: later;
    desert: dessert; beside: besides; besides: beside; price: prize; safe: save; save: safe; belief: believe;
    believe: belief; breath: breathe; breathe: breath; clothes: cloths, cloth; cost: coast; cause: course;
    course: cause, coarse; four: for; great: grate; hard: heard; heard: hard; hole: whole; hour: our;
    least: list, lest; lie: lay; low: law; law: low; made: make, maid; maybe: may be; mind: mine; plain: plane;
    plane: plain; poor: pour; rise: raise; raise: rise; same: some; some: same; sell: sale; ship: sheep; short: shot;
    sight: site; tale: tail; taste: test; tired: tried; tried: tired; walk: work; wear: where; which: witch;
    while: will; wonder: wander; world: word; word: world; worse: worst; worst: worse; expect: except;
    experience: experiment; economic: economical; quit: quite; every: ever; ever: every; still: steal; such: so;
    true: truth; found: find; find: found; spent: spend; spend: spent; almost: most; most: almost
    """,
    separator=",",
)

CONNECTIVES = replacement_table(
    """
    because: because of, cause, since; but: however; although: but, despite, even; however: but; so: therefore;
    despite: although, despite of; while: when; if: when, whether; when: if, while; also: too; too: also;
    therefore: so; as well as: and; such as: like, as; for example: for exemple, example; for instance: for example;
    on the other hand: in the other hand, on other hand; in order to: for, in order;
    a lot of: alot of, lot of, a lots of; lots of: lot of; as a result: as result, in a result;
    in addition: in additional, addition; in fact: infact, on fact; first of all: at first, first at all;
    at least: atleast, at less; in general: on general, generally; due to: because, due;
    in conclusion: as conclusion, on conclusion; more and more: more and; in my opinion: on my opinion, to my opinion;
    each other: each others; nowadays: now days, now a days; according to: according; instead of: instead;
    because of: because; even though: even, eventhough; as soon as: as soon; one of the: one of; most of the: most of;
    some of the: some of; at the same time: in the same time, at same time; all over: over all
    """,
    separator=",",
)

QUANTIFIERS = replacement_table(
    """
    many: much, a lot, lot of, many of; much: many, a lot; few: less, little; little: few, a few; fewer: less;
    less: fewer, lesser; more: most, much; most: more, almost; a few: few; a little: little; some: any; any: some;
    every: all, each; each: every; all: every, whole; several: some; both: all; very: so, too, very much; so: very;
    enough: so; such: so; lot: lots; lots: lot; another: other; number: amount; amount: number
    """,
    separator=",",
)

DERIVATIONS = replacement_table(
    """
    convenience: convenient; convenient: convenience; truth: true; success: succeed, successful;
    successful: success, succeed; succeed: success; choice: choose; choose: choice; difference: different;
    different: difference, differently; importance: important; important: importance; difficulty: difficult;
    difficult: difficulty; safety: safe; safe: safety; health: healthy; healthy: health; happiness: happy;
    happy: happiness; advice: advise; knowledge: know; education: educate; educated: education; development: develop;
    develop: development; developed: development; competition: compete; compete: competition; competitive: competition;
    life: live, alive; death: dead, die; dead: death, die, died; die: dead; died: dead; strength: strong;
    strong: strength; belief: believe; communication: communicate; communicate: communication; decision: decide;
    decide: decision; explanation: explain; freedom: free; growth: grow; improvement: improve;
    independent: independence; independence: independent; interested: interest, interesting;
    interesting: interested, interest; boring: bored; bored: boring; exciting: excited; excited: exciting;
    tired: tiring; surprising: surprised; surprised: surprise, surprising; confused: confusing;
    disappointed: disappoint; relaxed: relax; satisfied: satisfy; economic: economical, economy; economy: economic;
    political: politic, politics; politics: politic; historical: history; natural: nature; nature: natural;
    national: nation; social: society; society: social; scientific: science; scientists: scientist, science;
    technical: technique; responsibility: responsible; responsible: responsibility; possibility: possible;
    popularity: popular; ability: able, abilities; specific: specifically; special: specially; especially: special;
    variety: various; various: variety; wealth: wealthy; wealthy: wealth; patience: patient; confident: confidence;
    confidence: confident; dangerous: danger; danger: dangerous; beautiful: beauty; beauty: beautiful;
    independently: independent; poverty: poor; comparison: compare; existence: exist; loss: lose; lost: lose, loss;
    lose: lost, loss; thought: think; behavior: behave; advertisement: advertise; advertisements: advertising;
    pollution: pollute; population: popular; production: product, produce; products: productions; product: production;
    argument: argue; suggestion: suggest; teaching: teach; learning: learn; living: live; working: work; old: older;
    older: old; young: younger; younger: young; further: farther; low: lower; close: closed; closed: close;
    skills: skill, skilled; skilled: skill; talented: talent; advanced: advance; attractive: attracted, attract;
    useful: use; helpful: help; harmful: harm; careful: care; supposed: suppose; used: use; addicted: addict;
    opposed: oppose; concerned: concern; lecturer: lecture; traveler: travel; consumer: consume; employer: employee
    """,
    separator=",",
)
"""Words confused with another part of speech of the same root."""

SPLIT_COMPOUNDS = replacement_table(
    """
    sometimes: some times; however: how ever; without: with out; anyone: any one; everyone: every one;
    someone: some one; something: some thing; everything: every thing; anything: any thing; nothing: no thing;
    cannot: can not; into: in to; maybe: may be; although: al though; nowadays: now days; everyday: every day;
    everybody: every body; somebody: some body; anybody: any body; weekend: week end; classroom: class room;
    homework: home work; themselves: them selves; myself: my self; himself: him self; herself: her self;
    yourself: your self; ourselves: our selves; itself: it self; whatever: what ever; whenever: when ever;
    wherever: where ever; whoever: who ever; nobody: no body; another: an other; already: all ready;
    together: to gather; outside: out side; inside: in side; therefore: there fore; moreover: more over;
    otherwise: other wise; newspaper: news paper; football: foot ball; throughout: through out; meanwhile: mean while;
    grandmother: grand mother; grandfather: grand father; airport: air port; background: back ground;
    lifestyle: life style; lifetime: life time; worldwide: world wide; within: with in; upon: up on;
    afternoon: after noon; anymore: any more; always: all ways; understand: under stand; overcome: over come
    """,
    separator=",",
)

JOINABLE = frozenset(
    tuple(pair.split("_"))
    for pair in word_set(
        """
        a_lot at_least in_fact for_example as_well each_other no_one every_day all_right in_front of_course even_though
        in_order for_instance other_hand high_school at_all so_that such_as more_than a_few any_more at_first any_way
        no_matter up_to as_soon ice_cream young_people good_bye every_one every_time right_now even_if a_little
        long_time
        """
    )
)
"""Word pairs that learners run together most often."""

UNCOUNTABLE_PLURALS = replacement_table(
    """
    information: informations; advice: advices; homework: homeworks; knowledge: knowledges; equipment: equipments;
    furniture: furnitures; money: moneys; research: researches; news: new; traffic: traffics; work: works;
    evidence: evidences; luggage: luggages; music: musics; software: softwares; staff: staffs; people: peoples;
    behavior: behaviors; behaviour: behaviours; transportation: transportations; pollution: pollutions;
    technology: technologys; time: times; stuff: stuffs; weather: weathers; food: foods; education: educations;
    fun: funs; health: healths; housework: houseworks; children: childrens, childs, child; men: mens, mans;
    women: womens, womans; feet: foots, feets; teeth: tooths, teeths; mice: mouses; lives: lifes; wives: wifes;
    knives: knifes; sheep: sheeps; fish: fishes
    """,
    separator=",",
)

PHRASES_BY_FIRST_WORD: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
"""{first word: [(number of words, the words)]} of the keys of CONNECTIVES, the longest first."""
for _phrase in sorted(CONNECTIVES, key=lambda phrase: -len(phrase.split())):
    _words = tuple(_phrase.split())
    PHRASES_BY_FIRST_WORD.setdefault(_words[0], []).append((len(_words), _words))

OMISSIBLE = AUXILIARIES | word_set(
    """
    the a an to of in on at for that it and or but so there as they we you he she i their his her my our this which
    who if by with
    """
)
"""Words that learners leave out and that the rest of the sentence tells."""

SPURIOUS_BEFORE_SUBJECT = ("that", "that", "so", "and", "as", "is")
SPURIOUS_BEFORE_VERB = ("is", "are", "to", "be", "have", "can", "will", "also", "just", "always", "being", "it", "they")
SPURIOUS_BEFORE_ADJECTIVE = ("very", "more", "so", "most", "the", "also", "just", "a", "not")
SPURIOUS_BEFORE_NOUN = ("the", "of", "a", "some", "is", "more", "for", "to", "in")
"""Words that learners add before a word of the class named."""

MOVABLE = word_set(
    """
    also always never often only usually not really very still just even already sometimes too all both is are can
    will have not almost probably
    """
)
"""Words that learners put in the wrong place."""

VERY_FREQUENT = word_set("to he his her she it i my that you your they we no what by as so")
"""Words chosen less often for confusion than their frequency would have it."""
