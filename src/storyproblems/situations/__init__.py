"""All situations: those a story can open with, and the sequels that take it further."""

from collections.abc import Mapping, Sequence

from storyproblems.situation import Situation
from storyproblems.situations.comparing import COMPARING
from storyproblems.situations.earning import EARNING
from storyproblems.situations.rates import RATES
from storyproblems.situations.sequels import SEQUELS
from storyproblems.situations.shapes import SHAPES
from storyproblems.situations.spending import SPENDING
from storyproblems.situations.things import THINGS

OPENINGS: Mapping[str, Situation] = {
    situation.name: situation for situation in (*SPENDING, *EARNING, *THINGS, *RATES, *COMPARING, *SHAPES)
}
SEQUELS_BY_KIND: Mapping[str, Sequence[Situation]] = {
    kind: [sequel for sequel in SEQUELS if kind in sequel.follows.split()]
    for kind in ("things", "money", "pay", "bill", "fee", "minutes", "miles", "drive")
}
