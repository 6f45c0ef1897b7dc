"""How `aggdec drafter` trains: one recipe for every verifier (docs/tried.md says what was tried for it).

The verifier's encoder and, where it shares them, its embeddings stay frozen; the decoder starts from the verifier's
lower layers, reads a causal prefix, trains four blocks of a sentence in one pass, and has a transition head. There is
no dropout and no glancing: prefixes are drawn anew in each of the few epochs.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from fairseq_aggdec.bulk.data_bin import DataBin
from fairseq_aggdec.generation.modes import GREEDY
from fairseq_aggdec.generation.options import SearchOptions
from fairseq_aggdec.hub.settings import Settings
from fairseq_aggdec.train.distilling import Teacher

AVERAGED = 5
"""how many last checkpoints the drafter is the mean of"""
TOKENS = 2000
"""of an update, padding included"""
SAVES = 20
"""the most checkpoints that are written; the last `AVERAGED` of them are kept"""
LAST = "checkpoint_last.pt"
"""fairseq's name of a training's last checkpoint"""
_LOGGED = 200
"""log lines, at least"""
SHARES = (0.4, 0.6, 0.8, 1.0)
"""the block sizes that the drafter is measured at, as shares of the one that it is trained with"""
_FIXED = (
    "--task block_drafting --blocks-per-sentence 4 --arch nar_drafter --prefix-attention causal --transition-dim 128 "
    "--freeze-encoder --dropout 0 --attention-dropout 0 --activation-dropout 0 "
    "--criterion glancing_block_loss --glancing 0 --label-smoothing 0.1 --position-decay 0.8 "
    "--optimizer adam --adam-betas (0.9,0.98) --clip-norm 1 "
    "--lr-scheduler polynomial_decay --end-learning-rate 0.00002 "
    "--max-tokens-valid 6000 --required-batch-size-multiple 1 --skip-invalid-size-inputs-valid-test "
    "--no-epoch-checkpoints --save-interval 1000000 --validate-interval 1000000 --log-format json --seed 1 "
    "--num-workers 0"
).split()


@dataclass(frozen=True)
class Recipe:
    """What a drafter is trained from, its size, and how this machine computes."""

    verifier: Path
    width: int
    """the verifier's, which decides on the learning rate"""
    decoder_layers: int
    block_size: int
    device: torch.device
    bf16: bool
    """whether distillation and training compute in bfloat16"""

    @property
    def is_cpu(self) -> bool:
        """Whether no GPU computes."""
        return self.device.type == "cpu"

    @property
    def block_sizes(self) -> list[int]:
        """The sizes that the drafter is measured at."""
        return sorted({max(1, round(share * self.block_size)) for share in SHARES})

    def teacher(self, data: DataBin) -> Teacher:
        """The verifier, which distils the data by this plugin's engine, with the output of fairseq's beam of 1.

        An imported model has the lengths and blocked n-grams of its search, as when it decodes with the drafter.
        """
        search = Settings.greedy_search(data.folder)
        search.pop("block_ngrams", None)  # a teacher always blocks them
        return Teacher(
            str(self.verifier),
            data,
            SearchOptions(beam=1, **search),
            GREEDY,
            # a CPU decodes in fp32 though it trains in bfloat16
            "bf16" if self.bf16 and not self.is_cpu else "fp32",
            self.is_cpu,
        )

    def arguments(
        self, data: DataBin, folder: Path, updates: int, saves: int = SAVES
    ) -> list[str]:
        """The arguments of fairseq-train.

        Args:
            data: distilled data.
            folder: the folder of the checkpoints; a training that was stopped there continues.
            updates: how many, which the learning rate depends on.
            saves: how many checkpoints are written.
        """
        options = {
            "-s": data.source_lang,
            "-t": data.target_lang,
            "--encoder-from": self.verifier,
            "--decoder-from": self.verifier,
            "--decoder-layers": self.decoder_layers,
            "--block-size": self.block_size,
            "--max-tokens": TOKENS,
            # 0.002 up to a width of 256, 0.001 for 512, 0.0005 for 1024
            "--lr": min(0.002, 0.512 / self.width),
            "--warmup-updates": min(500, updates // 5),
            "--total-num-update": updates,
            "--max-update": updates,
            "--save-interval-updates": -(-updates // saves),
            "--keep-interval-updates": AVERAGED,
            "--log-interval": max(1, min(10, updates // _LOGGED)),
            "--save-dir": folder,
        }
        return [
            str(data.folder),
            *_FIXED,
            *(str(word) for pair in options.items() for word in pair),
            *["--bf16"] * self.bf16,
            *["--cpu"] * self.is_cpu,
        ]
