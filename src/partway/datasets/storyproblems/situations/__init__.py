"""All situations: those a story can open with, and the sequels that take it further."""

from collections.abc import Mapping, Sequence

from partway.datasets.storyproblems.situation import Situation
from partway.datasets.storyproblems.situations.comparing import COMPARING
from partway.datasets.storyproblems.situations.earning import EARNING
from partway.datasets.storyproblems.situations.rates import RATES
from partway.datasets.storyproblems.situations.sequels import SEQUELS
from partway.datasets.storyproblems.situations.shapes import SHAPES
from partway.datasets.storyproblems.situations.spending import SPENDING
from partway.datasets.storyproblems.situations.things import THINGS

OPENINGS: Mapping[str, Situation] = {
    situation.name: situation for situation in (*SPENDING, *EARNING, *THINGS, *RATES, *COMPARING, *SHAPES)
}
SEQUELS_BY_KIND: Mapping[str, Sequence[Situation]] = {
    kind: [sequel for sequel in SEQUELS if kind in sequel.follows.split()]
    for kind in ("things", "money", "pay", "bill", "fee", "minutes", "miles", "drive")
}
