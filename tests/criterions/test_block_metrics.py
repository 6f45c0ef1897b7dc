"""What is logged from the sums of several workers."""

import math
from typing import Any

import pytest
import torch
from fairseq.logging import metrics

from fairseq_aggdec.criterions.block_metrics import log_block_scores, log_losses


def test_losses_are_means_over_everything_in_bits() -> None:
    logs: list[dict[str, Any]] = [
        {"loss": 6.0, "nll_loss": 4.0, "sample_size": 2, "ntokens": 4},
        {"loss": torch.tensor(2.0), "nll_loss": torch.tensor(4.0), "sample_size": 6, "ntokens": 4},
    ]
    with metrics.aggregate() as logged:
        log_losses(logs)
    assert logged["loss"].avg == pytest.approx(1 / math.log(2), abs=1e-3)
    assert logged["nll_loss"].avg == pytest.approx(1 / math.log(2), abs=1e-3)


def test_blocks_of_all_workers_count_alike() -> None:
    logs = [
        {"_accepted": 3, "_blocks": 1, "_correct_0": 1, "_valid_0": 1, "_correct_1": 1, "_valid_1": 1},
        {"_accepted": 0, "_blocks": 3, "_correct_0": 0, "_valid_0": 3, "_correct_1": 0, "_valid_1": 0},
    ]
    with metrics.aggregate() as logged:
        log_block_scores(logs)
    assert dict(logged.get_smoothed_values()) == {"accepted": 0.75, "acc_1": 0.25, "acc_2": 1.0}
