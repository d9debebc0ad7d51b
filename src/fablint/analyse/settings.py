"""The few numbers that a judgement depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from fablint.model.limits.detection_limits import ALPHA, DETECTORS, SMALLEST_FAULT, TOLERANCE

Detector = Literal["components", "slow shares", "late messages", "retransmissions", "paths", "wiring"]
FIRST_LOOK = 0.75  # share of the chance of error that the first diagnosis of a run spends

# Resolution of the times (observations/resolution.py), relative to their median
FINEST_STEP = 2e-3  # smaller steps are not visible in log times of 32 bits, and do not matter
COARSE_STEP = 0.2  # larger steps need FEWEST_LEVELS values, since few values have large divisors,
FEWEST_LEVELS = 4  # or their decimal digits are the step
ROUNDING_NOISE = 12**-0.5  # standard deviation of rounding, in steps
LEVELS_OF_STEP = 30  # most frequent distinct values, from which the step is computed
MULTIPLES = 0.9  # share of the values that are multiples of the step
NEAREST = 0.25  # quantile of the times or rates over which the step is tolerated: that of the smaller ones, of a class
MOST_STEPS = 3.0  # steps up to which values count in the mean of a host

FEWEST_OF_KIND = 12  # cells between two kinds of hosts or NICs in a class, from which they have an offset

MOST_CANDIDATES = 100  # components of a view that may be measured again without a detection


@dataclass(frozen=True)
class SlowShares:
    """Numbers for components that are slow for a share of the time. Shares are fractions of the measurements."""

    far: float = 5.0  # robust standard deviations of the noise of its class, beyond which a measurement is slow
    usual: float = 0.01  # slow measurements that a healthy component may have: daemons and interrupts of a host
    tolerated: float = 1e-3  # chance of as many slow ones with the usual share, above which they are not reported
    scatter: float = 0.25  # fast measurements for each slow one, from which the times of a component scatter
    least: float = 0.03  # smaller shares are not reported
    most: float = 0.9  # from which a component is slow all the time: its median decides
    most_of_pair: float = 8.0  # measurements from one host to another count as so many at most: a pair is no component
    nearly: float = 3.0  # nats by which an alternative may explain less (20 to 1): indistinguishable
    likely: float = 0.01  # chance of so many slow ones, from which a component is not a candidate
    fewest: int = 4  # slow measurements of a component
    moments: int = 64  # equal parts of the measurements in order of time, as clusters of evidence for a SUSPECT
    stretches: int = 8  # the same for a FAULT: load may last for several moments
    fewest_stretches: int = 2  # with slow measurements, in a FAULT: load of a moment is no component
    suspect_rate: float = 0.01  # false SUSPECT components of a run, all views together
    bounded: float = 0.2  # upper 95 % bound of the share, up to which a component is OK and not only "in the median"


@dataclass(frozen=True)
class Settings:
    """Defaults are for production fabrics. Relative effects are fractions (0.05: 5 %)."""

    tolerance: float = TOLERANCE  # healthy variation: a part may be this much slower than its peers
    smallest_fault: float = SMALLEST_FAULT  # beyond the tolerance: what the evidence is tuned to tell from noise
    spread_factor: float = 5.0  # the tolerance is at least this many robust standard deviations of the parts themselves
    most_tolerance: float = 0.2  # where the parts differ so much that more must be tolerated, none of them is judged
    alpha: float = ALPHA  # chance of one false FAULT in a whole healthy run
    route_rate: float = 0.025  # share of false ones among suspect routes
    min_partners: int = 3  # fewer measured partners: NOT JUDGED
    loss_in_scope: float = 0.10  # a component with a larger loss must have been seen: else it is NOT JUDGED
    line_rate_share: float = 0.9  # of the negotiated speed, which large messages of a healthy host reach
    idle_nic_share: float = 0.02  # share of the packets of the busiest NIC up to which a NIC carried no messages
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
