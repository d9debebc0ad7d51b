"""All numbers that decide, grouped by subject; a number that several subjects share stands once.

A number decides if another value of it gives other findings, states or bounds of the same measurements. Sizes of
computations (blocks, samples, bins, iterations, rounding) stand beside their code: tests/analyse/test_settings.py lists
them. Probabilities say which share of the errors of a run they spend. Units: nats of evidence, robust standard
deviations of the noise, seconds, bytes, and fractions for shares and relative effects (0.05: 5 %).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from fablint.model.limits.detection_limits import ALPHA, DETECTORS, SMALLEST_FAULT, TOLERANCE

Detector = Literal["components", "slow shares", "late messages", "retransmissions", "paths", "wiring"]

# ---------------------------------------------------------------- chance of error
# ALPHA is the budget of false FAULTs of a healthy run: DETECTORS divides it among the detectors, `alpha_of` among the
# diagnoses of a run. The probabilities below spend nothing of it: they withhold, doubt or bound a finding.
FIRST_LOOK = 0.75  # share of the budget that the first diagnosis of a run spends
CHANCE = 0.01  # of an accident that withholds, doubts or suspects a component, or hides a second mode; in a run each
CONFIDENCE = 0.95  # of a bound of the share of slow measurements (Clopper and Pearson, 1934)
MISSED = 0.05  # probability that a link is slower than its bound, for all links together
RANDOM_ORDERS = 500  # orders of time, none of which may be as clustered as a period: a test at 1 in 500
EXPLAINED, NOT_EXPLAINED = 0.02, 0.2  # p-values by which slow pairs follow the declared cables, or do not

# ---------------------------------------------------------------- enough to be measured (least numbers)
FEWEST_INDEPENDENT = 2  # hosts at an end, pairs, stretches of time: what a single one shows is its own
FEWEST_PEERS = 3  # components, pairs or measurements to compare: of two, nothing shows which one is unusual
FEWEST_SLOW = 4  # slow measurements of what is slow for a share of the time
FEWEST_VALUES = 6  # values whose median has a 95 % interval, hosts with an effect in common
FEWEST_OF_SPREAD = 8  # values from which a spread or a share of neighbours is known
FEWEST_OF_MODE = 10  # pairs of hosts in a second mode: the tail of any noise has a few that agree
FEWEST_OF_CLASS = 12  # cells of a class of load, or between two kinds of hosts or NICs, from which it has an offset
FEWEST_OF_WINDOW = 24  # cells of a class in a window of time, from which the window has an effect
FEWEST_POOL = 30  # values from which noise, a tail, a correlation, a step or the effect of a segment is known
FEWEST_MESSAGES = 50  # messages of a pair from which the quantile FAST of them is known
OWN_POOL = 200  # values from which a class has a null distribution of its own

# ---------------------------------------------------------------- what is noise (robust standard deviations)
NOISIER = 2.0  # times the usual noise: a component varies over time, the pairs of a path scatter on their own
STANDS_OUT = 3.3  # a partner is ignored
CLEAR_DISTANCE = 4.0  # a pair is slow, a window of time has an effect, two modes are separate (Ashman's D asks for 2)
FAR = 5.0  # a measurement is slow, a loss exceeds the tolerance at all times, a component exceeds what parts differ by
FAR_OF_FEW = 8.0  # distance of a mode with fewer members than FEWEST_VALUES: outliers that agree by chance are no mode
FAR_ALONE = 10.0  # a direction of one pair is slow, without an estimate of the tail
CORE = 2.5  # spreads of the larger mode, within which the core of the smaller mode lies
MODE_GAP = 2.0  # spreads between the nearest members of two modes: of 1,000 samples of normal values, three have it
MOST_MODES = 3  # modes of the hosts
FINEST_NOISE = 1e-3  # smallest noise and spread: times are not more accurate than 0.1 %

# Resolution of the times (observations/resolution.py), relative to their median
COARSE_STEP = 0.2  # larger steps need FEWEST_LEVELS values, since few values have large divisors,
FEWEST_LEVELS = 4  # or their decimal digits are the step
NEAREST = 0.25  # quantile of the times or rates over which the step is tolerated: that of the smaller ones, of a class
ONE_STEP = 1.05  # steps up to which a difference of medians is rounding
MOST_STEPS = 3.0  # steps up to which values count in the mean of a host

# ---------------------------------------------------------------- shares (of members, of time, of a loss)
LITTLE_TRAFFIC = 0.02  # of the traffic of a host or its busiest NIC, up to which an interface carried no messages
SMALL_SHARE = 0.05  # of pairs or messages that is small: of a class, of a path, over a link, of the slowest pairs
HALF = 0.5  # of the members or of the time: the larger part decides what is usual
MOST = 0.6  # of the hosts at a time, of the links of a switch: the time or the switch is slow, not each of them
MOSTLY = 0.7  # of the measurements in a stretch of time, and of others outside; of the paths that are minimal
NEARLY_ALL = 0.9  # of the pairs of a component, of its measurements, of the multiples of a step
ALMOST_ALL = 0.95  # of the measurements of a component that was slow all the time
HALF_OF_LOSS = 0.5  # of the loss of a component or a pair: a user with less is healthy, a neighbour with more as slow
QUARTER_OF_LOSS = 0.25  # from which a neighbour is slow: load is uneven, the slowest pair of a moment exceeds others

# ---------------------------------------------------------------- what is comparable
BEST_PARTNERS = 0.2  # quantile of the pairs of a host: its time with the best of its partners
MOST_WHOLE_SWITCHES = 1  # switches whose hosts form a mode: then the switch is the candidate
MOST_FEW = 4  # switches, from FEWEST_PEERS, of which a slow one determines the median of the pairs between them
POPULATION_SHARE = 0.2  # of the paths of a kind: so many equally slow ones are a population of their own
SMALLEST_SHARED = 4096  # bytes: smaller messages do not fill a link
CALM_BYTES = 8192  # bytes: a message that fits into TCP's first window fills no queue of a switch
HOP_S, CABLE_S = 400e-9, 490e-9  # a switch, and 100 m of cable at 4.9 ns/m
GEOMETRY_S = HOP_S + CABLE_S  # s by which the latency of two healthy paths of a kind may differ
MOST_HOPS = 4  # cables beyond those of a message on one switch: up, across a fabric of three levels, down
WORST_LINE = 1e-8  # corrected code words per bit; healthy ones have 1e-12 to 1e-9

# ---------------------------------------------------------------- how much evidence
CLEAR_EVIDENCE = 3.0  # nats (20 to 1): smaller differences separate nothing, more speaks against a component
CLUSTER = 2.5  # nats that one pair or partner adds; more only if three partners would not be enough
LARGEST_OF_LATE = 4.0  # nats that the late messages of one pair add
EACH_SIDE = 0.25  # share of the evidence for a detection of both directions that each direction must have
SHARED = 0.8  # share of the evidence of a detection that another member must explain
COMMON_PRIOR = (0.5, 9.5)  # Beta prior of the shared probability: few pairs of a healthy fabric are late
OWN_PRIOR = (1.0, 0.5)  # Beta prior of a candidate's probability: most of its pairs are late

# ---------------------------------------------------------------- time and load
LONG_STRETCHES = 4  # equal parts of the time of a row, in FEWEST_INDEPENDENT of which a faulty component is slow

# ---------------------------------------------------------------- late messages
FAST = 0.1  # quantile of messages, or of ratios of mean to median, that no faulty component makes late
RARE_MESSAGES = 0.985  # quantile of all messages from which a message is rare,
LATE_DISTANCE = 0.75  # distances of the quartiles above the upper quartile from which it is far from the bulk
MOST_BELOW = 3.0  # times the usual ratio of median to minimum: beyond, the median itself is of late messages
SHARES_LATE = (1.0, 0.5, 0.25)  # shares of a link's messages that are late; each is tried
EXPOSED = 0.02  # probability of crossing a link from which a pair counts for it
LEAST_LATE = 1e-4  # smallest share of late messages that is assumed
MOST_OVERDISPERSION = 20.0  # of the numbers of late messages of healthy pairs

# ---------------------------------------------------------------- follow-up measurements (numbers)
MOST_CANDIDATES = 100  # components of a view that may be measured again without a detection
MOST_FOLLOW_UPS = 200  # pairs that are measured again
FOLLOW_UP_PAIRS = 24  # pairs proposed per component
MOST_ISOLATED = 20  # slow directions that one view reports: more of them have a common cause


@dataclass(frozen=True)
class SlowShares:
    """Numbers for components that are slow for a share of the time. Shares are fractions of the measurements."""

    usual: float = 0.01  # slow measurements that a healthy component may have: daemons and interrupts of a host
    tolerated: float = 1e-3  # chance of as many slow ones with the usual share, above which they are not reported
    scatter: float = 0.25  # fast measurements for each slow one, from which the times of a component scatter
    least: float = 0.03  # smaller shares are not reported
    most_of_pair: float = 8.0  # measurements from one host to another count as so many at most: a pair is no component
    moments: int = 64  # equal parts of the measurements in order of time, as clusters of evidence for a SUSPECT
    stretches: int = 8  # the same for a FAULT: load may last for several moments
    bounded: float = 0.2  # upper 95 % bound of the share, up to which a component is OK and not only "in the median"


@dataclass(frozen=True)
class Settings:
    """Defaults are for production fabrics. Relative effects are fractions (0.05: 5 %)."""

    tolerance: float = TOLERANCE  # healthy variation: a part may be this much slower than its peers
    smallest_fault: float = SMALLEST_FAULT  # beyond the tolerance: what the evidence is tuned to tell from noise
    spread_factor: float = FAR  # the tolerance is at least this many robust standard deviations of the parts themselves
    most_tolerance: float = 0.2  # where the parts differ so much that more must be tolerated, none of them is judged
    alpha: float = ALPHA  # chance of one false FAULT in a whole healthy run
    route_rate: float = 0.025  # share of false ones among suspect routes
    min_partners: int = FEWEST_PEERS  # fewer measured partners: NOT JUDGED
    loss_in_scope: float = 0.10  # a component with a larger loss must have been seen: else it is NOT JUDGED
    line_rate_share: float = NEARLY_ALL  # of the negotiated speed, which large messages of a healthy host reach
    idle_nic_share: float = LITTLE_TRAFFIC  # of the packets of the busiest NIC, up to which a NIC carried no messages
    shares: SlowShares = field(default_factory=SlowShares)
    look: int = 1  # number of this diagnosis in a run that is measured further after each: how many stages there were

    @property
    def log_loss_in_scope(self) -> float:
        """Log-effect on the time of a stream that loses `loss_in_scope` of its bandwidth."""
        return -math.log1p(-self.loss_in_scope)

    def alpha_of(self, detector: Detector, *, each_look: bool = True) -> float:
        """Chance of a false FAULT that a detector may spend in this diagnosis.

        Each diagnosis may end the measurement with a FAULT. The first one spends FIRST_LOOK of the chance of error of
        the run, diagnosis number k > 1 spends 1 / (k (k - 1)) of the rest: all diagnoses together, however many, spend
        no more than all of it.

        Parameters
        ----------
        each_look
            Does each diagnosis test anew? False for a test martingale over the stages of a run, and for the hosts' own
            spread, of which measuring more draws no further sample.
        """
        share = self.alpha * DETECTORS[detector]
        if not each_look:
            return share
        return share * (FIRST_LOOK if self.look == 1 else (1 - FIRST_LOOK) / (self.look * (self.look - 1)))
