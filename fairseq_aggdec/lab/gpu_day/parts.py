"""The parts of a GPU day and their commands: at full size on a GPU, and tiny on a CPU for a rehearsal."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_aggdec.lab.gpu_day.running import RESULT, Part, Step, shown
from fairseq_aggdec.text.shipped import SHIPPED

_PRECISIONS = ("fp32", "fp16", "bf16")
_ALL_MODES = "beam5,beam1,greedy,iad,gad,gad++:5:3,nar,aggressive-beam:5"
_LIMITS = {1: 16, 8: 32, 32: 64, 128: 128}
"""number of sentences to time, by batch size"""
_STAGES = {"prepare": 200, "teacher": 420, "distill": 420, "verifier": 420, "redistill": 420, "drafter": 420,
           "decode": 420, "score": 100, "bench": 420, "table": 60}  # fmt: skip
"""stages of the translation experiment, with the seconds that each should take; a longer one is resumed"""


@dataclass(frozen=True)
class Day:
    """The folders of a GPU day, and whether it is a rehearsal. All paths are absolute."""

    root: Path
    """root of the repository, where the commands run"""
    work: Path
    """folder for models and data that the steps make"""
    data: Path
    """folder of the data sets"""
    rehearse: bool = False
    """whether to run tiny versions of all steps on a CPU"""

    def _path(self, path: Path) -> str:
        """A path for a command in the repository's root."""
        return shown(path, self.root)

    @property
    def device(self) -> str:
        return "cpu" if self.rehearse else "cuda"

    def sizes(self, *names: str) -> Sequence[str]:
        return ("bart-small",) if self.rehearse else names

    def parts(self) -> list[Part]:
        """All parts in the order in which they run, the most useful first."""
        speeds = [
            Part(name, f"Random {size} model", self._speed(size))
            for name, size in (("base", "base"), ("big", "big"), ("big-9-3", "big-9-3"), ("bart", "bart-12-2"))
        ]
        return [
            Part("tests", "Tests on the device", [self._tests()]),
            *self._verify(),
            *speeds[:2],
            Part("shipped", "Shipped models", self._shipped()),
            *speeds[2:],
            Part("train", "Training in half precision", self._train()),
            # not rehearsed: memory is that of a GPU, and the tests of the small experiment run the same stages
            *([] if self.rehearse else [Part("memory", "Memory", self._memory())]),
            *([] if self.rehearse else [Part("translation", "Base-size translation", self._translation())]),
        ]

    def _tests(self) -> Step:
        command = [*"python -m pytest -q -p no:cacheprovider".split(), "tests/cuda"]
        if self.rehearse:
            return Step("pytest", [*command, "-k", "proposal_heads and fp32"], 400, {"AGGDEC_TEST_DEVICE": "cpu"})
        return Step("pytest", command, 400)

    def _verify(self) -> list[Part]:
        """A part for each model."""
        parts = []
        for name, modes, model in self._verified():
            steps = [self._make_data(name)] if name in SHIPPED else []
            needed = [step.name for step in steps]
            for precision in _PRECISIONS[:1] if self.rehearse else _PRECISIONS:
                options = ["--modes", modes, "--precisions", precision, *self._at(("1,8,32", 32), ("1,2", 2))]
                options.append("--no-bit-exact")  # refused on an H100, whose products depend on the batch
                command = [*"python -m fairseq_aggdec.cli.verify".split(), *model, *options, "--json", RESULT]
                steps.append(Step(precision, command, after=needed))
            parts.append(Part(f"verify-{name}", f"aggdec verify: {name}", steps))
        return parts

    def _make_data(self, task: str) -> Step:
        """The step that makes sentences for a shipped model."""
        pairs = "60" if self.rehearse else "20000" if task == "mt" else "2000"
        place = [task, self._data(task), "--data", self._path(self.data), "--pairs", pairs]
        return Step(f"data-{task}", [*"python -m fairseq_aggdec.cli.gpu_day data".split(), *place], 60)

    def _verified(self) -> list[tuple[str, str, list[str]]]:
        """For each model that is verified: its name, the modes, and the options that name the model."""
        gec, mt = (SHIPPED[name].folder for name in ("gec", "mt"))
        lossless = "greedy,iad,aggressive-beam:5"
        drafting = lossless.replace("iad", "iad,gad")
        shipped = [
            ("gec", lossless, ["-s", "src", "-t", "tgt", "--path", self._path(gec / "model.pt")]),
            ("mt", drafting, ["-s", "en", "-t", "de", "--path", self._path(mt / "model.pt"),
                              "--drafter-path", self._path(mt / "drafter.pt")]),
        ]  # fmt: skip
        random = [
            (size, drafting, ["--random-model", size, *self._kept()])
            for size in self.sizes("base", "big", "big-9-3", "bart-12-2")
        ]
        return [*((name, modes, [self._data(name), *rest]) for name, modes, rest in shipped), *random]

    def _data(self, task: str) -> str:
        return self._path(self.work / "data" / task)

    def _at(self, full: tuple[str, int], tiny: tuple[str, int]) -> list[str]:
        """Options for the device, the batch sizes and the number of sentences; `tiny` is for a rehearsal."""
        sizes, limit = tiny if self.rehearse else full
        return ["--device", self.device, "--batch-sizes", sizes, "--limit", str(limit)]

    def _bench(self, size: str, batch_sizes: str, limit: int, modes: str, *options: str) -> list[str]:
        random = ["--random-model", size, *self._kept(), "--no-profile", *["--repeats", "1"] * self.rehearse]
        where = self._at((batch_sizes, limit), (batch_sizes, 2))
        chosen = ["--modes", modes, *options, "--json", RESULT]
        return [*"python -m fairseq_aggdec.cli.bench".split(), *random, *where, *chosen]

    def _kept(self) -> list[str]:
        """Options of random models: the folder that all steps share and, in a rehearsal, a short output."""
        return ["--keep", self._path(self.work / "models"), *["--length", "5"] * self.rehearse]

    def _half(self) -> list[str]:
        return [] if self.rehearse else ["--fp16"]

    def _shipped(self) -> list[Step]:
        """Times of the shipped models, whose drafts are those of real text."""
        steps = [self._make_data(task) for task in SHIPPED]
        for name, modes, model in self._verified():
            if name not in SHIPPED:
                continue
            timed = f"beam5,beam1,{modes},aggressive-beam:5:0" + ",gad++:5:3" * ("gad," in modes)
            options = [*self._at(("1,8,32", 64), ("1", 2)), "--no-profile", "--no-memory", *self._half()]
            command = [*"python -m fairseq_aggdec.cli.bench".split(), *model, "--modes", timed, *options]
            steps.append(Step(name, [*command, "--json", RESULT], 90, after=(f"data-{name}",)))
        return steps

    def _speed(self, name: str) -> list[Step]:
        (size,) = self.sizes(name)
        steps = []
        for batch_size, limit in ({1: 2} if self.rehearse else _LIMITS).items():
            command = self._bench(size, str(batch_size), limit, _ALL_MODES, "--no-memory", *self._half())
            steps.append(Step(f"batch-{batch_size}", command, 120))
        peers = ["--no-memory", "--peers", "ctranslate2:greedy,ctranslate2:beam5", *self._half()]
        steps.append(Step("ctranslate2", self._bench(size, "1,32", 32, "greedy", *peers)))
        steps.append(
            Step("fp32", self._bench(size, "1", 8, "beam5,beam1,greedy,iad,gad,aggressive-beam:5", "--no-memory"))
        )
        return steps

    def _memory(self) -> list[Step]:
        """Memory at the smallest and the largest batch size; each mode needs a process of its own."""
        (size,) = self.sizes("base")
        modes = _ALL_MODES.replace("nar,", "")
        return [Step(f"batch-{n}", self._bench(size, str(n), n, modes, *self._half()), 200) for n in (1, 128)]

    def _train(self) -> list[Step]:
        data, model = self._data("mt"), self._path(SHIPPED["mt"].folder / "model.pt")
        small = self.rehearse
        common = [
            "--user-dir", "fairseq_aggdec", *(["--cpu"] if small else ["--fp16"]), "-s", "en", "-t", "de",
            *"--optimizer adam --clip-norm 1.0 --lr-scheduler inverse_sqrt --lr 0.0005 --dropout 0.0 --seed 1".split(),
            *"--no-epoch-checkpoints --no-progress-bar --log-format simple --log-interval 20".split(),
            "--max-tokens", "300" if small else "8000", "--max-update", "2" if small else "300",
            "--warmup-updates", "1" if small else "100", "--skip-invalid-size-inputs-valid-test",
        ]  # fmt: skip
        drafter, heads = (self._path(self.work / name) for name in ("drafter", "heads"))
        trained = {
            "drafter": ["--task", "block_drafting", "--arch", "nar_drafter_small", "--block-size", "10",
                        "--encoder-from", model, "--freeze-encoder", "--decoder-from", model, "--decoder-layers", "2",
                        *"--max-source-positions 256 --max-target-positions 256".split(),
                        *"--criterion glancing_block_loss --label-smoothing 0.1".split(),
                        "--save-dir", drafter],
            "heads": ["--arch", "blockwise_transformer", "--base-checkpoint", model,
                      *"--identity-head --freeze-base --block-heads 4 --own-hidden --heads-per-step 4".split(),
                      *"--max-source-positions 256 --max-target-positions 256".split(),
                      "--criterion", "blockwise_loss", "--save-dir", heads],
        }  # fmt: skip
        timed = [*"python -m fairseq_aggdec.cli.bench".split(), data, "-s", "en", "-t", "de", "--no-memory",
                 *self._at(("1,32", 64), ("1", 2)), *self._half()]  # fmt: skip
        decoded = {
            "drafter": ["--path", model, "--drafter-path", f"{drafter}/checkpoint_last.pt",
                        "--modes", "beam1,greedy,gad"],
            "heads": ["--path", f"{heads}/checkpoint_last.pt", "--modes", "beam1,greedy,blockwise"],
        }  # fmt: skip
        made = self._make_data("mt")
        steps = [made]
        for name in trained:
            steps.append(Step(name, ["fairseq-train", str(data), *common, *trained[name]], 200, after=(made.name,)))
            steps.append(Step(f"decode-{name}", [*timed, *decoded[name], "--json", RESULT], after=(name,)))
        return steps

    def _translation(self) -> list[Step]:
        stages = tuple(_STAGES)
        return [
            Step(
                stage,
                ["bash", "scripts/reproduce.sh", "tatoeba_en_de_base", stage],
                _STAGES[stage],
                {"AGGDEC_WORK": self._path(self.work), "AGGDEC_DATA": self._path(self.data), "BENCH_LIMIT": "128"},
                resumable=True,
                after=stages[:place],
            )
            for place, stage in enumerate(stages)
        ]
