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
CHANCE = 0.01  # of an accident: that doubts or withholds a finding, of a SUSPECT share of the time, of a second mode
BEYOND_DOUBT = 1e-6  # of an accident that several allocations, each with one first host, have in common
CHANCE_OF_CLIQUES = 1e-4  # of noise to form the switches that are inferred from times, however bimodal it is
CONFIDENCE = 0.95  # of intervals and bounds: of shares of slow measurements, of the losses of all links, paths or ends
RANDOM_ORDERS = 500  # orders of time, none of which may be as clustered as a period: a test at 1 in 500
NOT_EXPLAINED = 0.2  # p-value beyond which slow pairs of a path do not follow the declared cables; they do up to CHANCE

# ---------------------------------------------------------------- enough to be measured (least numbers)
FEWEST_INDEPENDENT = 2  # hosts at an end, pairs, stretches of time, allocations: what a single one shows is its own
FEWEST_PEERS = 3  # components, pairs, sizes or measurements to compare: of two, nothing shows which one is unusual
FEWEST_SLOW = 4  # slow measurements of what is slow for a share of the time
FEWEST_VALUES = 6  # values whose median has a 95 % interval, hosts with an effect in common
FEWEST_OF_SPREAD = 8  # values from which a spread, a drift or a share of neighbours is known
FEWEST_OF_CLASS = 12  # cells of a class of load or kind of NIC with an offset, pairs of hosts of a second mode
FEWEST_OF_WINDOW = 24  # cells of a class in a window of time that has an effect; with 30, it misses a short slow period
FEWEST_POOL = 30  # values that show noise, a tail, a correlation, a step, the effect of a segment, the quantile FAST
OWN_POOL = 200  # values from which a class has a null distribution of its own
SIZE_RANGE = 8  # times the smallest size of a row is the largest one that separates time per message and per byte

# ---------------------------------------------------------------- what is noise (robust standard deviations)
NOISIER = 2.0  # times the usual noise: a component varies over time, the pairs of a path scatter on their own
STANDS_OUT = 3.3  # a partner is ignored
CLEAR_DISTANCE = 4.0  # a pair is slow, a window of time has an effect, two modes are separate (Ashman's D asks for 2)
FAR = 5.0  # a measurement is slow, a loss exceeds the tolerance at all times, a component exceeds what parts differ by
FAR_ALONE = 10.0  # of few: a direction of a pair is slow without an estimate of the tail, a small mode is no accident
CORE = 2.5  # spreads of the larger mode, within which the core of the smaller mode lies
MODE_GAP = 2.0  # spreads between the nearest members of two modes: of 1,000 samples of normal values, three have it
MOST_MODES = 3  # modes of the hosts
FINEST_NOISE = 1e-3  # smallest noise and spread: times are not more accurate than 0.1 %

# Resolution of the times (observations/resolution.py), relative to their median
COARSE_STEP = 0.2  # larger steps need FEWEST_LEVELS values, since few values have large divisors,
FEWEST_LEVELS = 4  # or their decimal digits are the step
MOST_STEPS = 3.0  # steps up to which values count in the mean of a host

# ---------------------------------------------------------------- shares (of members, of time, of a loss)
LITTLE_TRAFFIC = 0.02  # of the traffic of a host or its busiest NIC, up to which an interface carried no messages
RARE_DIRECTIONS = 1e-3  # of the directions of a matrix that are measured once: so few slow ones are a note
SMALL_SHARE = 0.05  # of pairs or messages that is small: of a class, of a path, over a link, of the slowest pairs
HALF = 0.5  # of members, of time, of a loss: more is usual; a user with less is healthy, a neighbour with more as slow
QUARTER = 0.25  # of the evidence or losses of the other direction, of hosts, of the times and rates of a class
SHARE_OF_PAIRS = 0.3  # of a component, late or lossy in a FAULT: of fewer, some paths across it are as good a reason
MOST = 0.6  # of the hosts at a time, of the links of a switch: with 0.7, drift is a period of load
MOSTLY = 0.7  # of the measurements in a period, and of others outside: with 0.6, slow shares of the time are periods
SETS_MEDIAN = 0.4  # of the messages of a pair, over a slow link that can make their median slow
NEARLY_ALL = 0.9  # of the pairs of a component or switch, of its measurements, of the multiples of a step
MARGIN = 0.03  # relative change of a quantity that is accepted between two runs, and is too small for a term of a line

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
CLUSTER_OF_PLACE = 4.0  # nats that one pair says of the switch of its host: a switch may have four other hosts only
SPEAKS = 1.5  # nats beyond the price of a candidate, from which it is named late or lossy: four hosts give no more
SETTLED = math.log(3)  # log-odds of a part in series from which it is acted on; below, the next test is proposed
SHARED = 0.8  # share of the evidence of a detection that another member must explain
COMMON_PRIOR = (0.5, 9.5)  # Beta prior of the shared probability: few pairs of a healthy fabric are late
OWN_PRIOR = (1.0, 0.5)  # Beta prior of a candidate's probability: most of its pairs are late

# ---------------------------------------------------------------- time and load
LONG_STRETCHES = 4  # equal parts of the time of a row, in FEWEST_INDEPENDENT of which what is always slow is slow
STRETCHES = 8  # the same for what is slow for a share of the time or varies; load may last for two of these

# ---------------------------------------------------------------- late messages
FAST = 0.1  # quantile of messages, or of ratios of mean to median, that no faulty component makes late
RARE_MESSAGES = 0.985  # quantile of all messages from which a message is rare,
LATE_DISTANCE = 0.75  # distances of the quartiles above the upper quartile from which it is far from the bulk
TIMES_USUAL = 3.0  # ratio of median to minimum, beyond which the median is of late messages; of mean to median: a loss
LONG_TAIL = 1.5  # ratio of the slowest messages, beyond the loss of their median: they were sent again
LEAST_LATE = 1e-4  # smallest share of late messages that is assumed
MOST_OVERDISPERSION = 20.0  # of the numbers of late messages of healthy pairs
FEWEST_LOST = 10  # segments of a component, or of the paths that all share
LOSSY, LOSSY_STREAMS = 1e-3, 1e-2  # shares of the segments of a component that are sent again: streams fill queues

# ---------------------------------------------------------------- most that is named or measured again (numbers)
MOST_HOSTS = 64  # that miss a threshold of the site, at most half of all: of more, it is not the hosts
MOST_FOLLOW_UPS = 200  # components of a view that may be measured again
FOLLOW_UP_PAIRS = 24  # pairs proposed per component
MOST_ISOLATED = 20  # slow directions that one view reports, since more have a common cause; paths measured alone


@dataclass(frozen=True)
class SlowShares:
    """Numbers for components that are slow for a share of the time. Shares are fractions of the measurements."""

    usual: float = 0.01  # slow measurements that a healthy component may have: daemons and interrupts of a host
    tolerated: float = 1e-2  # chance of as many slow ones with the usual share, above which they are not reported
    least: float = 0.03  # smaller shares are not reported
    most_of_pair: float = 8.0  # measurements from one host to another count as so many at most: a pair is no component
    moments: int = 64  # equal parts of the measurements in order of time, as clusters of a SUSPECT; STRETCHES: a FAULT
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
